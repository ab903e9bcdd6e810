"""Numbers over all images of an explained dataset, as lines and tables of text."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from pinprick.explain.noise.statistics import Association, Estimate
from pinprick.explain.noise.totals import Totals


@dataclass(frozen=True)
class Table:
    """A table of text; a column whose name starts with ">" is aligned to the right."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def totals_text(totals: Totals) -> Iterator[str | Table]:
    """Shares with 95 % intervals over images, effects against map regions, and flip rates."""
    yield (
        f"\n{totals.explained} of {totals.images} images were fooled and explained, "
        f"{totals.failed} attacks failed, {totals.skipped} images needed no attack"
    )
    if not totals.explained:
        return
    yield "in brackets: 95 % intervals over images; n: number of images"
    yield f"changed pixels per image: {number(totals.pixels)}"
    yield f"groups per image: {number(totals.groups)}"
    yield f"clusters per image, pixels that touch along their sides: {number(totals.clusters)}"
    yield f"windows of 8 x 8 pixels with a changed pixel, per image: {number(totals.windows)}"
    if totals.saliency_overlap.images:
        yield f"overlap with the adversarial saliency map: {number(totals.saliency_overlap)}"
    yield f"images in which every changed pixel is needed: {percent(totals.minimal)}"
    if totals.settled.images:
        yield f"images in which polishing finished: {percent(totals.settled)}"
    yield f"groups with a decided label: {percent(totals.decided)}"
    yield _kinds(totals)
    yield f"obscuring share of the margin change, median: {number(totals.obscuring_share)}"
    yield f"images in which it is above one half: {percent(totals.mostly_obscuring)}"
    yield _flips(totals)
    yield from _regions(totals)
    empty = totals.no_true_map + totals.no_adversarial_map
    if empty:
        yield f"{empty} {'map was' if empty == 1 else 'maps were'} zero everywhere: left out"
    error = f"{100 * totals.largest_error:.1f} %"
    yield f"largest standard error of an effect: {error} of the margin change"


def _kinds(totals: Totals) -> Table:
    """Shares of groups by three definitions; all shares of a column have the same n."""
    columns = {
        "by Shapley value": totals.kinds,
        "by ablation": totals.ablation_kinds,
        "along the path": totals.path_kinds,
    }
    return Table(
        (
            "kind of group",
            *(f">{name}, n = {kinds[0].share.images}" for name, kinds in columns.items()),
        ),
        [
            (row[0].name, *(interval(one.share) for one in row))
            for row in zip(*columns.values(), strict=True)
        ],
    )


def _flips(totals: Totals) -> Table:
    return Table(
        ("groups changed", ">leaves the true class", ">reaches the other"),
        [(flip.name, percent(flip.leaves), percent(flip.reaches)) for flip in totals.flips],
    )


def _regions(totals: Totals) -> Iterator[str | Table]:
    """Where groups lie on the maps; nothing if there were no maps, or all were zero."""
    if not totals.inside.images and not totals.table.groups:
        return
    yield Table(
        ("groups: effect \\ place", *(f">{name}" for name in totals.table.columns)),
        [
            (name, *map(str, counts))
            for name, counts in zip(totals.table.rows, totals.table.counts, strict=True)
        ],
    )
    yield f"association of effect and place: {association(totals.table)}"
    for one in totals.strict:
        where = {"obscuring": "true", "leading": "other"}[one.name]
        yield f"{one.name} groups on the map of the {where} class: {percent(one.share)}"
    yield "changed pixels in the top 20 % of the map of the true class, clean image:"
    yield f"  share: {percent(totals.inside)}; by chance: {percent(totals.inside_chance)}"
    yield f"  images with p < 0.05 against all shifts: {percent(totals.inside_significant)}"


def association(table: Association) -> str:
    """Cramér's V with its p, and the number of groups."""
    if math.isnan(table.cramers_v):
        kinds = sum(any(row) for row in table.counts)
        places = sum(any(column) for column in zip(*table.counts, strict=True))
        got = f"got {kinds} and {places} (n = {table.groups} groups)"
        return f"undefined: needs 2 kinds and 2 places, {got}"
    return f"Cramér's V {table.cramers_v:.2f}, p {table.p:.2g}, n = {table.groups} groups"


def percent(estimate: Estimate) -> str:
    """As "41 % (35 to 47), n = 64"."""
    return f"{interval(estimate)}, n = {estimate.images}"


def interval(estimate: Estimate) -> str:
    """As "41 % (35 to 47)"."""
    if math.isnan(estimate.value):
        return "-"
    value, low, high = (100 * part for part in (estimate.value, estimate.low, estimate.high))
    return f"{value:.0f} % ({low:.0f} to {high:.0f})"


def number(estimate: Estimate) -> str:
    """As "7.3 (6.1 to 8.4), n = 64"."""
    if math.isnan(estimate.value):
        return f"-, n = {estimate.images}"
    interval = f"{estimate.low:.3g} to {estimate.high:.3g}"
    return f"{estimate.value:.3g} ({interval}), n = {estimate.images}"
