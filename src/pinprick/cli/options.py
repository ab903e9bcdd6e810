"""The arguments that several commands share, and their defaults."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinprick.errors import BadInput, UnknownName

if TYPE_CHECKING:
    from pinprick.jobs.pictures import PictureSource

DEFAULT_MODEL = "efficientnet_lite0"
DEFAULT_ATTACK = "pinprick"
DEFAULT_COMPARISON = f"ifgsm,{DEFAULT_ATTACK}"
DEFAULT_FOLDER = Path("pinprick-out")

FORMATS = ("text", "markdown", "latex", "csv")  # of a summary

FOR_PNGS = {"pinprick": {"values": "8bit"}}  # values that survive in a PNG
QUICK = {"pinprick": {"effort": "fast"}}  # where polishing follows

Pictures = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="IMAGES",
        help="Picture files or folders of them; by default the photographs of the demo.",
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
    typer.Option(
        "--attack",
        metavar="NAME",
        help="The attack; `pinprick attacks` lists them. One of yours goes by package.module:Class "
        "or file.py:Class.",
    ),
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
        help="The true class by number, name or ImageNet synset: one for all pictures, or one per "
        "picture in order. By default the model's prediction for the clean picture.",
    ),
]
Mask = Annotated[
    Path | None,
    typer.Option(
        "--mask",
        metavar="FILE|DIR",
        help="A PNG in which white pixels may change, for all pictures; or a folder with NAME.png "
        "per picture. As large as the picture file, or as the image that the model sees.",
        show_default=False,
    ),
]
LabelsByNumber = Annotated[
    bool,
    typer.Option(
        "--labels-by-number",
        help="Labels of --data are the model's class numbers, whatever the names of the classes. "
        "By default classes go by name.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="CLASS|least-likely|given",
        help="The target class by number or name, or as --data gives it; by default any class but "
        "the label.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="NUMBER", help="The same seed gives the same images.")]
Seeds = Annotated[
    str | None,
    typer.Option(
        metavar="0,1,2",
        help="Run once per seed, each in a folder of its own, and summarise all of them.",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="text|markdown|latex|csv",
        help="Print the summary alone in this format; by default the table of all pictures and, "
        "of several pictures, the summary as text.",
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="COUNT",
        help="Images per batch. By default on a CPU: 1 for models of more than 64 pixels per side, "
        "else 4 to 256, as many as take about a minute. By default on a GPU: up to 256 at 32 x 32 "
        "and 64 at 224 x 224, halved until they fit.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        metavar="COUNT",
        help="CPU threads. By default 1 or torch's own number, whichever a short test shows to be "
        "faster, unless OMP_NUM_THREADS is set. The same result bit for bit needs the same COUNT.",
        show_default=False,
    ),
]
SpeedName = Annotated[
    str,
    typer.Option(
        "--speed",
        metavar="exact|graphs|fast|compiled",
        help="How a GPU is used. At graphs recorded passes are replayed, in the same arithmetic. "
        "At fast the search is in bfloat16, and every image is judged in float32. "
        "At compiled that search is compiled too, which takes up to a minute at first.",
    ),
]
Resume = Annotated[
    bool | None,
    typer.Option(
        "--resume/--no-resume",
        help="Go on with the run that was stopped in this --out, or start again without it. "
        "Prints the saved summary of a run that has finished, as in --format. By "
        "default a run is refused where another was stopped, and replaces one that has finished.",
        show_default=False,
    ),
]
Device = Annotated[
    str,
    typer.Option(metavar="NAME", help="cpu, cuda, cuda:1, mps; auto takes a GPU if there is one."),
]
Folder = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write files to.")]
Figures = Annotated[
    int | None,
    typer.Option(min=0, metavar="COUNT", help="Draw at most COUNT figures; all by default."),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="SET[IMAGES]",
        help="Labelled images of a dataset instead of pictures, as in cifar10/test[0:100].",
        show_default=False,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, metavar="COUNT", help="Use only the first COUNT images of --data."),
]
TrainingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="KEY=VALUE", help="A setting of the training; may be repeated."
    ),
]
TrainingFolder = Annotated[
    Path, typer.Option(metavar="DIR", help="The folder for checkpoint, weights and card.")
]
Root = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="The folder of datasets; by default PINPRICK_DATA, or the user's cache.",
        show_default=False,
    ),
]
Trace = Annotated[
    bool,
    typer.Option(
        "--trace",
        help="Record the best result so far per picture against its passes, in the JSON file.",
    ),
]
MaxForwards = Annotated[
    int | None,
    typer.Option("--max-forwards", min=0, metavar="COUNT", help="Most forward passes per image."),
]
MaxBackwards = Annotated[
    int | None,
    typer.Option(
        "--max-backwards",
        min=0,
        metavar="COUNT",
        help="Most backward passes per image.",
    ),
]
MaxPasses = Annotated[
    int | None,
    typer.Option(
        "--max-passes",
        min=0,
        metavar="COUNT",
        help="Most forward and backward passes per image, added up.",
    ),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        "--max-seconds",
        min=0,
        metavar="SECONDS",
        help="Most seconds of an attack for all images together. Images under attack then keep the "
        "best result so far; later images stay clean.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar and no remarks.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def read_source(
    images: list[Path] | None,
    data: str | None,
    root: Path | None,
    limit: int | None,
    label: list[str] | None,
    target: str | None = None,
    *,
    mask: Path | None = None,
    by_number: bool = False,
    usual_limit: int | None = None,
) -> "PictureSource":
    """The pictures to work on; ``usual_limit`` is the limit of --data where none is given."""
    from pinprick.jobs.pictures import PictureSource

    return PictureSource(
        paths=images or (),
        data=data,
        root=root,
        limit=usual_limit if limit is None and data is not None else limit,
        labels=label or (),
        target=target,
        mask=mask,
        by_number=by_number,
    )


def read_seeds(seed: int, seeds: str | None) -> list[int]:
    """The seeds of ``--seeds``, or that of ``--seed``."""
    if seeds is None:
        return [seed]
    if seed:
        raise BadInput(f"give --seed or --seeds, not both; got {seed} and {seeds}")
    try:
        numbers = [int(number) for number in seeds.split(",")]
    except ValueError:
        raise BadInput(f"--seeds takes whole numbers, as in 0,1,2; got {seeds}") from None
    if len(set(numbers)) < len(numbers):
        raise BadInput(f"each seed may be listed once; got {seeds}")
    return numbers


def check_format(form: str | None, *, json: bool) -> None:
    """Refuse a format that there is not, before the work starts."""
    if form is None:
        return
    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS)
    if json:
        raise BadInput("give --format or --json, not both")


def read_options(given: Iterable[str]) -> dict[str, str]:
    """``["eps=8/255"]`` as ``{"eps": "8/255"}``; the attack reads the values."""
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
    """``"pgd,cw_l0:quick"`` and ``["pgd.steps=20"]`` as one description per attack.

    An attack with a preset after a colon has options of its own.
    """
    specs: dict[str, dict[str, str]] = {}
    for name in (name.strip() for name in names.split(",")):
        if name in specs:
            raise BadInput(f"the attack {name} is listed twice")
        attack, preset = _split_preset(name)
        specs[name] = read_attack(attack, [f"preset={preset}"] if preset is not None else ())
    for key, value in read_options(given).items():
        owners = [name for name in specs if key.startswith(f"{name}.") and key != f"{name}."]
        if not owners:
            raise BadInput(
                f"an option of compare starts with one of its attacks, as in "
                f"{next(iter(specs))}.key=value; got {key}={value}"
            )
        specs[owners[0]][key.removeprefix(f"{owners[0]}.")] = value
    return list(specs.values())


def _split_preset(name: str) -> tuple[str, str | None]:
    """``"cw_l0:quick"`` as name and preset; a class of one's own is ``"mine:Walk:quick"``."""
    from pinprick.attacks import ATTACKS

    attack, colon, rest = name.partition(":")
    if attack in ATTACKS or not colon:
        return attack, rest if colon else None
    own = re.fullmatch(r"(.*?\.py:\w+|[\w.]+:\w+):(\w+)", name)
    return (own[1], own[2]) if own else (name, None)
