"""``pinprick prove``: prove how few changes fool a small network."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinprick.cli import options
from pinprick.cli.console import Console, print_json, print_table
from pinprick.cli.native_output import native_output_to_stderr

if TYPE_CHECKING:
    from pinprick.jobs.prove import ProveOutcome


def main(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="A file that `pinprick attack --save` wrote.")
    ],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The model; `pinprick models` lists them. By default that of RESULT.",
            show_default=False,
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="elements|pixels",
            help="What is counted; by default what the attack counts.",
            show_default=False,
        ),
    ] = None,
    mask: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|DIR",
            help="The mask of the attack, if it had one; white pixels may change.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="COUNT", help="Use only the first COUNT images of RESULT."),
    ] = None,
    seconds: Annotated[float, typer.Option(metavar="SECONDS", help="Time limit per image.")] = 60.0,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write RESULT to FILE with every better image that was found.",
            show_default=False,
        ),
    ] = None,
    trust: options.Trust = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Prove how few changes fool a small network.

    The network must be an nn.Sequential of affine layers and ReLUs, with at most 1024 ReLUs and
    images of at most 4096 elements. Needs SciPy: pip install 'pinprick[bounds]'.

    One line per image: what the attack needs, the bounds, and what is known. `optimal`: no image
    with fewer changes fools. `better attack found`: an image with fewer changes does, and --save
    writes it. `between`: the time was too short. Bounds that were found by then hold.
    """
    from pinprick.jobs.prove import prove_saved

    with native_output_to_stderr():
        outcome = prove_saved(
            result,
            model=model,
            unit=unit,
            mask=mask,
            limit=limit,
            seconds=seconds,
            save=save,
            trust=trust,
            progress=Console(quiet=quiet),
        )
    if json:
        print_json(outcome.plain())
    else:
        _print(outcome)


def _print(outcome: "ProveOutcome") -> None:
    from pinprick.report.words import duration

    proof, plain = outcome.proof, outcome.plain()
    print_table(
        (">image", ">label", f">attack, {proof.unit}", ">at least", ">at most", "known", ">time"),
        [
            (
                str(row["image"]),
                str(row["label"]),
                *(_count(row[name]) for name in ("needed", "lower", "upper")),
                str(row["status"]),
                duration(row["seconds"]),
            )
            for row in plain["images"]
        ],
    )
    typer.echo(
        f"proved {plain['proved']} of {plain['attacked']} images that were not fooled before"
    )
    if plain["ratio"] is not None:
        typer.echo(f"the attack needs {plain['ratio']:.3f} times the optimum, in the mean")


def _count(number: int | None) -> str:
    return "none" if number is None else str(number)
