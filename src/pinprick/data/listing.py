"""``csv:PATH``: a list of picture files and their labels.

Either the layout of the NIPS-2017 adversarial competition: columns ``ImageId`` and ``TrueLabel``,
and perhaps ``TargetClass``, where classes are ImageNet's and count from 1; or columns ``file`` and
``label``, where labels are numbers from 0 or words. Files lie beside the list or in ``images``
there, and an ``ImageId`` may lack its suffix.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

import torch

from pinprick.data.classes import class_number, is_number
from pinprick.data.dataset import Dataset
from pinprick.errors import BadInput
from pinprick.zoo.imagenet import imagenet_classes

_SUFFIXES = ("", ".png", ".jpg", ".jpeg", ".JPEG")


def load(path: Path, split: str) -> Dataset:
    if split == "train":
        raise BadInput(f"{path} is a list without a training split")
    columns = _columns(path)
    targets = None
    if {"ImageId", "TrueLabel"} <= columns.keys():
        names, classes = columns["ImageId"], imagenet_classes()
        labels = _numbers(path, "TrueLabel", columns["TrueLabel"], len(classes), first=1)
        if "TargetClass" in columns:
            targets = _numbers(path, "TargetClass", columns["TargetClass"], len(classes), first=1)
    elif {"file", "label"} <= columns.keys():
        names = columns["file"]
        labels, classes = _labels(path, columns["label"])
    else:
        raise BadInput(
            f"{path} must have the columns ImageId and TrueLabel, or file and label; "
            f"it has {', '.join(columns) or 'none'}"
        )
    return Dataset(
        name=f"csv:{path}",
        classes=classes,
        labels=torch.tensor(labels),
        pixels=None,
        files=tuple(_find(path.parent, name) for name in names),
        indices=torch.arange(len(labels)),
        source=f"csv:{path}",
        targets=None if targets is None else torch.tensor(targets),
    )


def _columns(path: Path) -> dict[str, list[str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.reader(file, strict=True))
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path} is no CSV file ({error})") from None
    rows = [row for row in rows if row]
    if len(rows) < 2:
        raise BadInput(f"{path} lists no pictures")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise BadInput(
                f"line {number} of {path} has {len(row)} fields and its header {len(rows[0])}; "
                "is it cut short?"
            )
    return {head.strip(): [row[at].strip() for row in rows[1:]] for at, head in enumerate(rows[0])}


def _numbers(
    path: Path, column: str, texts: Sequence[str], count: int | None, *, first: int
) -> list[int]:
    """Classes as numbers from 0, where the column counts from ``first``."""
    found = []
    for line, text in enumerate(texts, start=2):
        number = class_number(text)
        if number is None or number < first or (count is not None and number >= count + first):
            end = "" if count is None else f" to {count - 1 + first}"
            raise BadInput(
                f"{column} in line {line} of {path} must be a whole number from {first}{end}, "
                f"got {text!r:.40}"
            )
        found.append(number - first)
    return found


def _labels(path: Path, texts: Sequence[str]) -> tuple[list[int], tuple[str, ...]]:
    """The class of each row, and the names of the classes where labels are words."""
    if any(map(is_number, texts)):
        return _numbers(path, "label", texts, None, first=0), ()
    words = tuple(sorted(set(texts)))
    if "" in words:
        raise BadInput(f"label in line {texts.index('') + 2} of {path} is empty")
    numbers = {word: number for number, word in enumerate(words)}
    return [numbers[text] for text in texts], words


def _find(folder: Path, name: str) -> Path:
    """The file that is there, or the likeliest one, which is missed when it is read."""
    places = [place / f"{name}{end}" for place in (folder, folder / "images") for end in _SUFFIXES]
    likely = folder / "images" / (name if Path(name).suffix else f"{name}.png")
    return next((place for place in places if place.is_file()), likely)
