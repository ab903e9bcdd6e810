"""What holds over all images of a dataset, in lines and tables for people."""

import math

import typer

from pinprick.cli.console import print_table
from pinprick.explain.noise.statistics import Association, Estimate
from pinprick.explain.noise.totals import Totals


def print_totals(totals: Totals) -> None:
    """Shares with 95 % intervals over images, the table of labels and places, flip rates."""
    typer.echo(
        f"\n{totals.explained} of {totals.images} images were fooled and explained, "
        f"{totals.failed} attacks failed, {totals.skipped} images needed no attack"
    )
    if not totals.explained:
        return
    typer.echo("in brackets: 95 % intervals over images; n: number of images")
    typer.echo(f"changed pixels per image: {number(totals.pixels)}")
    typer.echo(f"groups per image: {number(totals.groups)}")
    typer.echo(f"images in which every changed pixel is needed: {percent(totals.minimal)}")
    if totals.settled.images:
        typer.echo(f"images in which polishing finished: {percent(totals.settled)}")
    typer.echo(f"groups with a decided label: {percent(totals.decided)}")
    _print_kinds(totals)
    typer.echo(f"obscuring share of the margin change, median: {number(totals.obscuring_share)}")
    typer.echo(f"images in which it is above one half: {percent(totals.mostly_obscuring)}")
    _print_flips(totals)
    _print_places(totals)
    empty = totals.no_true_map + totals.no_adversarial_map
    if empty:
        typer.echo(f"{empty} {'map was' if empty == 1 else 'maps were'} zero everywhere: left out")
    error = f"{100 * totals.largest_error:.1f} %"
    typer.echo(f"largest standard error of an effect: {error} of the margin change")


def _print_kinds(totals: Totals) -> None:
    """Shares of groups by three definitions; all shares of a column have the same n."""
    columns = {
        "by Shapley value": totals.kinds,
        "by ablation": totals.ablation_kinds,
        "along the path": totals.path_kinds,
    }
    print_table(
        (
            "kind of group",
            *(f">{name}, n = {kinds[0].share.images}" for name, kinds in columns.items()),
        ),
        [
            (row[0].name, *(interval(one.share) for one in row))
            for row in zip(*columns.values(), strict=True)
        ],
    )


def _print_flips(totals: Totals) -> None:
    print_table(
        ("groups changed", ">leaves the true class", ">reaches the other"),
        [(flip.name, percent(flip.leaves), percent(flip.reaches)) for flip in totals.flips],
    )


def _print_places(totals: Totals) -> None:
    """Where groups lie; nothing where there were no maps, or all were zero."""
    if not totals.inside.images and not totals.table.groups:
        return
    print_table(
        ("groups: effect \\ place", *(f">{name}" for name in totals.table.columns)),
        [
            (name, *map(str, counts))
            for name, counts in zip(totals.table.rows, totals.table.counts, strict=True)
        ],
    )
    typer.echo(f"association of effect and place: {association(totals.table)}")
    for one in totals.strict:
        where = {"obscuring": "true", "leading": "other"}[one.name]
        typer.echo(f"{one.name} groups on the map of the {where} class: {percent(one.share)}")
    typer.echo("changed pixels in the top 20 % of the map of the true class, clean image:")
    typer.echo(f"  share: {percent(totals.inside)}; by chance: {percent(totals.inside_chance)}")
    typer.echo(f"  images with p < 0.05 against all shifts: {percent(totals.inside_significant)}")


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
