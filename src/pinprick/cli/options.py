"""The arguments that several commands share, and their defaults."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from pinprick.errors import BadInput

DEFAULT_MODEL = "efficientnet_lite0"
DEFAULT_ATTACK = "pinprick"
DEFAULT_COMPARISON = f"ifgsm,{DEFAULT_ATTACK}"
DEFAULT_FOLDER = Path("pinprick-out")

FOR_PNGS = {"pinprick": {"values": "8bit"}}  # what is written is a PNG, so values keep to its grid
QUICK = {"pinprick": {"effort": "fast"}}  # where what is left over is put back afterwards

Pictures = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="IMAGES",
        help="Picture files, or folders of them; the photographs of the demo if there are none.",
        show_default=False,
    ),
]
ModelName = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="torchvision:NAME, timm:NAME, file:PATH, package.module:function and more; "
        "`pinprick models` lists them.",
    ),
]
AttackName = Annotated[
    str,
    typer.Option("--attack", metavar="NAME", help="The attack; `pinprick attacks` lists them."),
]
AttackOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="A setting of the attack; may be repeated."),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Load model files that are programs, too (TorchScript, torch.export)."
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="CLASS",
        help="The true class, by number, in words or by ImageNet synset: one for all pictures, or "
        "one for each in turn. Without it, what the model says of the clean picture.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="CLASS|least-likely|given",
        help="The class to be taken for, by number or in words, or as --data gives it; without it, "
        "any but the label.",
    ),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same images.")]
BatchSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="COUNT",
        help="Pictures to attack at a time; by default 1 on a CPU, and what fits on a GPU.",
    ),
]
Device = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="cpu, cuda, cuda:1, mps; auto takes a GPU where there is one."
    ),
]
Folder = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="The folder that files are written to.")
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="SET[IMAGES]",
        help="Images of a dataset instead of pictures, as cifar10/test[0:100]; they have labels.",
        show_default=False,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, metavar="COUNT", help="At most so many images of --data."),
]
Root = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="The folder that datasets are kept in; without it PINPRICK_DATA, or the user's cache.",
        show_default=False,
    ),
]
Trace = Annotated[
    bool,
    typer.Option(
        "--trace",
        help="Write down the best so far of each picture against its passes, in the JSON.",
    ),
]
MaxForwards = Annotated[
    int | None,
    typer.Option(
        "--max-forwards", min=0, metavar="COUNT", help="Most forward passes of an attack per image."
    ),
]
MaxBackwards = Annotated[
    int | None,
    typer.Option(
        "--max-backwards",
        min=0,
        metavar="COUNT",
        help="Most backward passes of an attack per image.",
    ),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        "--max-seconds",
        min=0,
        metavar="SECONDS",
        help="Most seconds of an attack for all images together; those still attacked then keep "
        "the best so far, the others stay clean.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar and no remarks.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def check_data_options(
    data: str | None, pictures: list[Path] | None, label: list[str] | None, limit: int | None
) -> None:
    """Raise ``BadInput`` where pictures and a dataset are mixed."""
    if data is None and limit is not None:
        raise BadInput("--limit is for --data; leave pictures out instead")
    if data is not None and pictures:
        raise BadInput("give pictures, or a dataset with --data, but not both")
    if data is not None and label:
        raise BadInput("images of --data have their labels; leave --label out")


def read_options(given: Iterable[str]) -> dict[str, str]:
    """``["eps=8/255"]`` as ``{"eps": "8/255"}``; what the values mean, the attack decides."""
    options: dict[str, str] = {}
    for text in given:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise BadInput(f"an option is written key=value, as in eps=8/255; got {text!r}")
        if key in options:
            raise BadInput(f"the option {key} is given twice, as {options[key]} and {value}")
        options[key] = value
    return options


def read_attack(name: str, given: Iterable[str], *, quick: bool = False) -> dict[str, str]:
    """``"pgd"`` and ``["steps=20"]`` as the description of an attack whose images become PNGs."""
    usual = FOR_PNGS.get(name, {}) | (QUICK.get(name, {}) if quick else {})
    return {"name": name, **usual, **read_options(given)}


def read_attacks(names: str, given: Iterable[str]) -> list[dict[str, str]]:
    """``"pgd,cw_l0:quick"`` and ``["pgd.steps=20"]`` as one description for each attack.

    A preset after a colon makes it another attack to compare, with options of its own.
    """
    specs: dict[str, dict[str, str]] = {}
    for name in (name.strip() for name in names.split(",")):
        if name in specs:
            raise BadInput(f"the attack {name} is listed twice")
        attack, colon, preset = name.partition(":")
        specs[name] = read_attack(attack, [f"preset={preset}"] if colon else ())
    for key, value in read_options(given).items():
        name, dot, setting = key.partition(".")
        if not (dot and setting) or name not in specs:
            raise BadInput(
                f"an option of compare starts with one of its attacks, as in "
                f"{next(iter(specs))}.key=value; got {key}={value}"
            )
        specs[name][setting] = value
    return list(specs.values())
