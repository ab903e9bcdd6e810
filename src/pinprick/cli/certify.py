"""``pinprick certify``: prove that few changed pixels fool no picture of a small network."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinprick.cli import options
from pinprick.cli.console import Console, label_words, print_json, print_label_note, print_table
from pinprick.errors import BadInput

if TYPE_CHECKING:
    from pinprick.jobs.certify import SmoothedOutcome


def main(
    images: options.Pictures = None,
    model: options.ModelName = options.DEFAULT_MODEL,
    data: options.Data = None,
    root: options.Root = None,
    limit: options.Limit = None,
    label: options.Labels = None,
    labels_by_number: options.LabelsByNumber = False,
    target: options.Target = None,
    mask: options.Mask = None,
    t: Annotated[
        int | None,
        typer.Option(
            "-t",
            "--changes",
            min=1,
            metavar="COUNT",
            show_default="1",
            help="Most changes to try.",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(metavar="pixels|elements", show_default="pixels", help="What is counted."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", show_default="60", help="Time limit for all pictures together."
        ),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="COUNT",
            show_default="1000000",
            help="Most sub-problems per picture and number.",
        ),
    ] = None,
    smoothed: Annotated[
        bool,
        typer.Option(
            "--smoothed",
            help="Of a network that votes, certify the classifier of infinitely many draws.",
        ),
    ] = False,
    draws: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="COUNT",
            show_default="1000",
            help="With --smoothed: draws per picture.",
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            show_default="0.001",
            help="With --smoothed: largest probability that a claim is wrong.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", show_default="0", help="With --smoothed: seed of the draws."
        ),
    ] = None,
    device: options.Device = "auto",
    trust: options.Trust = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Prove that few changes cannot fool a small network.

    The network must be an nn.Sequential of affine layers and ReLUs, with at most 8192 ReLUs and
    images of at most 4096 elements, such as pinprick:fashion_cnn. The numbers 1, 2, … up to -t are
    tried in turn.

    One line per picture. `certified`: no change of at most so many pixels fools. `known to fool`:
    fewest pixels with which an image that fools was found on the way. `refuted`: one more than
    certified fools. `undecided`: the limits of time or sub-problems were too low. With --target,
    only images of the target class fool.

    A network that votes over few pixels at a time (train --recipe ablation) is certified by its
    votes, in one pass for any -t. With --smoothed the answer is about another classifier, that of
    infinitely many draws, and holds with probability 1 - alpha per picture.
    """
    from pinprick.jobs.certify import certify_pictures, certify_smoothed_pictures

    source = options.read_source(
        images, data, root, limit, label, target, mask=mask, by_number=labels_by_number
    )
    search = {"t": t, "unit": unit, "seconds": seconds, "nodes": nodes}
    sampling = {"draws": draws, "alpha": alpha, "seed": seed}
    _refuse_idle(search if smoothed else sampling, smoothed=smoothed)
    where: dict[str, Any] = {"device": device, "trust": trust, "progress": Console(quiet=quiet)}
    if smoothed:
        _print_smoothed(certify_smoothed_pictures(model, source, **_given(sampling), **where), json)
        return
    outcome = certify_pictures(model, source, **_given(search), **where)
    unit = unit or "pixels"
    plain = outcome.plain()
    if json:
        print_json(plain)
    else:
        print_table(
            ("picture", "label", f">certified, {unit}", ">known to fool", "outcome", ">nodes"),
            [
                (
                    str(row["picture"]),
                    label_words(record),
                    _words(row["certified"], "any"),
                    _words(row["fewest_known"], "none"),
                    str(row["outcome"]),
                    str(row["nodes"]),
                )
                for row, record in zip(plain["images"], outcome.records, strict=True)
            ],
        )
        print_label_note(outcome.records)
    if outcome.unreadable:
        raise typer.Exit(2)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _refuse_idle(values: dict[str, Any], *, smoothed: bool) -> None:
    """Raise ``BadInput`` where an option was given that would have no effect."""
    for name in _given(values):
        option = "-t" if name == "t" else f"--{name}"
        raise BadInput(f"{option} has no effect {'with' if smoothed else 'without'} --smoothed")


def _print_smoothed(outcome: "SmoothedOutcome", json: bool) -> None:
    plain, found = outcome.plain(), outcome.certificate
    if json:
        print_json(plain)
    else:
        print_table(
            ("picture", "label", ">radius, pixels", ">probability at least", "outcome"),
            [
                (
                    str(row["picture"]),
                    label_words(record),
                    "-" if row["radius"] is None else str(row["radius"]),
                    f"{math.floor(1000 * row['probability']) / 1000:.3f}",  # not more than known
                    str(row["outcome"]),
                )
                for row, record in zip(plain["images"], outcome.records, strict=True)
            ],
        )
        print_label_note(outcome.records)
        typer.echo(
            f"Each line is wrong with probability at most {found.alpha:g}. It is about the "
            f"classifier of infinitely many draws of {found.kept} pixels. {found.model} has fixed "
            "draws; without --smoothed it is certified itself."
        )
    if outcome.unreadable:
        raise typer.Exit(2)


def _words(number: int | None, infinite: str) -> str:
    return infinite if number is None else str(max(number, 0))
