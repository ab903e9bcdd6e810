"""``pinprick train-generator``: train the network of an attack that has one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinprick.cli import options
from pinprick.cli.console import print_json, print_table
from pinprick.cli.train import TrainingConsole

if TYPE_CHECKING:
    from pinprick.attacks.egs_tssa.saved_generator import GeneratorCard

DEFAULT_FOLDER = Path("pinprick-generator")


def main(
    model: Annotated[
        str, typer.Option(metavar="NAME", help="The model to attack; `pinprick models` lists some.")
    ],
    data: Annotated[
        str,
        typer.Option(
            "--data",  # typer 0.27 would name it after the metavar: --DATA
            metavar="DATA",
            help="The images to train on, as for `pinprick train`; best the model's own training "
            "images.",
        ),
    ],
    attack: Annotated[
        str, typer.Option(metavar="NAME", help="The attack that the generator is for.")
    ] = "egs_tssa",
    target: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="The class to reach, by name or number; by default the generator is untargeted.",
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="The held-out images, which are never trained on; by default the test split, or a "
            "fifth of the images if there is none.",
        ),
    ] = None,
    root: options.Root = None,
    option: options.TrainingOption = None,
    out: options.TrainingFolder = DEFAULT_FOLDER,
    store: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="How weights are stored: float32 or float16. The card is of the generator as it "
            "is stored.",
        ),
    ] = "float32",
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", help="The same seed gives the same generator.")
    ] = 0,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Train the generator of an attack, such as EGS-TSSA.

    Writes generator.safetensors and card.json to a folder, which `--option weights=DIR` of the
    attack loads. A generator is for one model, one size of images, and one target or none.

    The same command resumes a training that was stopped, after its last whole epoch.
    """
    from pinprick.jobs.train_generator import train_generator

    console = TrainingConsole(quiet=quiet)
    card = train_generator(
        attack,
        model,
        data,
        out,
        target=target,
        test=test,
        root=root,
        options=options.read_options(option or []),
        store=store,
        seed=seed,
        device=device,
        progress=console,
    )
    if json:
        print_json({key: value for key, value in card.facts.items() if key != "history"})
    else:
        _print_card(card)
    console.remark(
        f"weights and card are in {out}; use them with --attack {attack} --option weights={out}"
    )


def _print_card(card: "GeneratorCard") -> None:
    rows = []
    for name in ("single_pass", "in_a_tenth_of_the_pixels"):
        found = card.facts[name]
        most = found["most_pixels"]
        rows.append(
            (
                "one pass" if most is None else f"one pass, at most {most} pixels",
                f"{found['fooling_rate']:.1%}",
                f"{found['pixels']:.1f}",
                f"{found['elements']:.1f}",
                str(found["images"]),
            )
        )
    print_table(("measured", ">fooling rate", ">pixels", ">elements", ">images"), rows)
    typer.echo(f"training time {card.facts['seconds']:.1f} s")
