"""``csv:PATH``: a list of picture files and their labels.

Either the layout of the NIPS-2017 adversarial competition: columns ``ImageId`` and ``TrueLabel``,
and perhaps ``TargetClass``, where classes are ImageNet's and count from 1; or columns ``file`` and
``label``, where labels are numbers from 0 or words. Files lie beside the list or in ``images``
there, and an ``ImageId`` may lack its suffix.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from pinprick.data.classes import imagenet_classes, is_number, whole_number
from pinprick.data.dataset import Dataset, NoSplit
from pinprick.errors import BadInput

_NIPS = ("ImageId", "TrueLabel")
_TARGET = "TargetClass"
_PLAIN = ("file", "label")
_SUFFIXES = (".png", ".jpg", ".jpeg", ".JPEG")


@dataclass(frozen=True)
class _Column:
    """The fields of one column, and the lines of the file that they are in."""

    name: str
    path: Path
    lines: Sequence[int]
    texts: Sequence[str]

    def error(self, row: int, fault: str) -> BadInput:
        return BadInput(f"{self.name} in line {self.lines[row]} of {self.path} {fault}")


def load(path: Path, split: str) -> Dataset:
    if split == "train":
        raise NoSplit(f"{path} is a list without a training split")
    columns = _columns(path)
    nips, plain = ({*layout} <= columns.keys() for layout in (_NIPS, _PLAIN))
    if nips and plain:
        raise BadInput(f"{path} has the columns of two layouts: {', '.join((*_NIPS, *_PLAIN))}")
    classes: tuple[str, ...] = ()
    targets = None
    if nips:
        names, classes = columns["ImageId"], imagenet_classes()
        labels = _numbers(columns["TrueLabel"], len(classes), first=1)
        if _TARGET in columns:
            targets = _numbers(columns[_TARGET], len(classes), first=1)
    elif plain:
        names = columns["file"]
        labels, classes = _labels(columns["label"])
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
        files=tuple(_find(names, row) for row in range(len(labels))),
        indices=torch.arange(len(labels)),
        source=f"csv:{path}",
        targets=None if targets is None else torch.tensor(targets),
    )


def _columns(path: Path) -> dict[str, _Column]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            rows = [(reader.line_num, row) for row in reader if row]
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path} is no CSV file ({error})") from None
    if len(rows) < 2:
        raise BadInput(f"{path} lists no pictures")
    heads = [head.strip() for head in rows[0][1]]
    for name in (*_NIPS, *_PLAIN, _TARGET):
        if heads.count(name) > 1:
            raise BadInput(
                f"{path} has {heads.count(name)} columns called {name}; remove all but one"
            )
    for line, row in rows[1:]:
        if len(row) != len(heads):
            raise BadInput(
                f"line {line} of {path} has {len(row)} fields and its header {len(heads)}; "
                "is it cut short?"
            )
    lines = [line for line, _ in rows[1:]]
    return {
        head: _Column(head, path, lines, [row[at].strip() for _, row in rows[1:]])
        for at, head in enumerate(heads)
    }


def _numbers(column: _Column, count: int | None, *, first: int) -> list[int]:
    """Classes as numbers from 0, where the column counts from ``first``."""
    found = []
    for row, text in enumerate(column.texts):
        number = whole_number(text)
        if number is None or number < first or (count is not None and number >= count + first):
            end = "" if count is None else f" to {count - 1 + first}"
            raise column.error(row, f"must be a whole number from {first}{end}, got {text!r:.40}")
        found.append(number - first)
    return found


def _labels(column: _Column) -> tuple[list[int], tuple[str, ...]]:
    """The class of each row, and the names of the classes where labels are words."""
    if any(map(is_number, column.texts)):
        return _numbers(column, None, first=0), ()
    words = tuple(sorted(set(column.texts)))
    if "" in words:
        raise column.error(column.texts.index(""), "is empty")
    numbers = {word: number for number, word in enumerate(words)}
    return [numbers[text] for text in column.texts], words


def _find(column: _Column, row: int) -> Path:
    """The file that exists, or else the likeliest one; reading that raises the error."""
    name, folder = column.texts[row], column.path.parent
    if not name:
        raise column.error(row, "is empty")
    candidates = [folder / name, folder / "images" / name]
    try:
        found = [path for path in candidates if path.is_file()] or [
            path
            for candidate in candidates
            for suffix in _SUFFIXES
            if (path := candidate.with_name(f"{candidate.name}{suffix}")).is_file()
        ]
        same = all(found[0].samefile(other) for other in found[1:])
    except OSError:  # too long
        raise column.error(row, f"is no name of a file: {name!r:.40}") from None
    if not same:
        both = " or ".join(map(str, found[:2]))
        raise column.error(row, f"may be {both}; give its path or suffix")
    likely = folder / "images" / (name if Path(name).suffix else f"{name}.png")
    return found[0] if found else likely
