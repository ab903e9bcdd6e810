"""What holds over all images of a dataset, in words and tables for people."""

import math

import typer

from pinprick.cli.console import print_table
from pinprick.explain.association import Association
from pinprick.explain.bootstrap import Estimate
from pinprick.explain.totals import Totals


def print_totals(totals: Totals) -> None:
    """Shares with 95 % intervals over images, the table of labels and places, flip rates."""
    typer.echo(
        f"\nover {totals.explained} of {totals.images} images, fooled and explained "
        f"({totals.failed} failed, {totals.skipped} needed no attack); in brackets, 95 % intervals "
        "over images"
    )
    if not totals.explained:
        return
    typer.echo(
        f"changed pixels {number(totals.pixels)}, groups {number(totals.groups)}; no pixel to "
        f"spare in {percent(totals.minimal)} of images; labels decided {percent(totals.decided)}"
    )
    if totals.settled.images:
        typer.echo(
            f"polished until no pixel can be spared: {percent(totals.settled)} of images; the "
            "others were cut off before"
        )
    print_table(
        ("kind", ">share of groups", ">by ablation", ">along the path"),
        [
            (one.name, percent(one.share), percent(ablation.share), percent(path.share))
            for one, ablation, path in zip(
                totals.kinds, totals.ablation_kinds, totals.path_kinds, strict=True
            )
        ],
    )
    typer.echo(
        f"obscuring part of the margin's change: median {number(totals.obscuring_share)}; above "
        f"one half in {percent(totals.mostly_obscuring)} of images"
    )
    _print_flips(totals)
    _print_places(totals)
    empty = totals.no_true_map + totals.no_adversarial_map
    if empty:
        typer.echo(f"{empty} {'map is' if empty == 1 else 'maps are'} zero everywhere and left out")
    error = f"{100 * totals.largest_error:.1f} %"
    typer.echo(f"largest standard error {error} of the margin's change")


def _print_flips(totals: Totals) -> None:
    print_table(
        ("groups changed", ">images", ">leaves the true class", ">reaches the other"),
        [
            (flip.name, str(flip.leaves.images), percent(flip.leaves), percent(flip.reaches))
            for flip in totals.flips
        ],
    )


def _print_places(totals: Totals) -> None:
    """Where groups lie; nothing where there were no maps, or all were zero."""
    if not totals.inside.images and not totals.table.groups:
        return
    print_table(
        ("what it does \\ where it lies", *(f">{name}" for name in totals.table.columns)),
        [
            (name, *map(str, counts))
            for name, counts in zip(totals.table.rows, totals.table.counts, strict=True)
        ],
    )
    typer.echo(f"association: {association(totals.table)}")
    strict = ", ".join(f"{one.name} {percent(one.share)}" for one in totals.strict)
    typer.echo(f"groups that lie where they should for what they do: {strict}")
    typer.echo(
        f"changed pixels in the top 20 % of the clean image's map: {percent(totals.inside)}, by "
        f"chance {percent(totals.inside_chance)}; beyond random shifts (p < 0.05) in "
        f"{percent(totals.inside_significant)} of images"
    )


def association(table: Association) -> str:
    """Cramér's V with its p, and over how many groups."""
    if math.isnan(table.cramers_v):
        return f"none to be had from {table.groups} groups"
    return f"Cramér's V {table.cramers_v:.2f}, p {table.p:.2g}, {table.groups} groups"


def percent(estimate: Estimate) -> str:
    """As "41 % (35 to 47)"."""
    if math.isnan(estimate.value):
        return "-"
    value, low, high = (100 * part for part in (estimate.value, estimate.low, estimate.high))
    return f"{value:.0f} % ({low:.0f} to {high:.0f})"


def number(estimate: Estimate) -> str:
    """As "7.3 (6.1 to 8.4)"."""
    if math.isnan(estimate.value):
        return "-"
    return f"{estimate.value:.3g} ({estimate.low:.3g} to {estimate.high:.3g})"
