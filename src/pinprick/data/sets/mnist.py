"""What the MNIST family shares: four idx files in torchvision's layout.

Torchvision's own classes do not read them here. They ask only whether the files are there, though
one may have been cut short, and they prefer a cache that old versions left in ``processed``.
"""

import gzip
import math
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pinprick.data.dataset import Dataset, read_parts
from pinprick.data.fetch import Progress, fetch, has_checksum
from pinprick.data.pictures import Unreadable
from pinprick.data.source import Source, listed
from pinprick.errors import BadInput

_STEMS = {"train": "train", "test": "t10k"}
_CHUNK = 1 << 20


def idx_source(name: str, title: str, kind: str, classes: Sequence[str]) -> Source:
    """The set that the class ``kind`` of torchvision reads."""
    return Source(
        name=name,
        title=title,
        counts={"train": 60_000, "test": 10_000},
        classes=len(classes),
        shape=(1, 28, 28),
        place=f"{kind}/raw",
        load=partial(_load, name, kind, tuple(classes)),
        get=partial(_get, kind),
        faults=partial(_faults, kind),
    )


def _load(name: str, kind: str, classes: tuple[str, ...], root: Path, split: str) -> Dataset:
    folder = root / kind / "raw"

    def read(part: str) -> tuple[Tensor, Tensor]:
        paths = [folder / f"{_STEMS[part]}-{what}-ubyte" for what in ("images-idx3", "labels-idx1")]
        faults = [Unreadable(path, reason) for path in paths if (reason := _head(path)[1])]
        if faults:
            raise BadInput(
                f"{name}/{part} is not whole in {root} ({listed(faults)}); "
                f"get it with: pinprick data get {name} --root {root}"
            )
        pixels, labels = map(_read, paths)
        return pixels.unsqueeze(1), labels.long()

    pixels, labels = read_parts(name, split, read)
    return Dataset.in_memory(name, classes, pixels, labels, f"{name}/{split}")


def _get(kind: str, root: Path, progress: Progress | None) -> None:
    """Fetch the archives of files that are missing or damaged, and unpack them."""
    known = _torchvision(kind)
    folder = root / kind / "raw"
    for archive, md5 in known.resources:
        path = folder / Path(archive).stem
        if _fault(path, folder / archive, md5):
            urls = [f"{mirror}{archive}" for mirror in known.mirrors]
            fetch(urls, folder / archive, md5, progress=progress)
            aside = path.with_name(f"{path.name}.part")
            with gzip.open(folder / archive) as packed, aside.open("wb") as file:
                shutil.copyfileobj(packed, file)
            aside.replace(path)


def _faults(kind: str, root: Path) -> list[Unreadable]:
    folder = root / kind / "raw"
    found = []
    for archive, md5 in _torchvision(kind).resources:
        path = folder / Path(archive).stem
        if reason := _fault(path, folder / archive, md5):
            found.append(Unreadable(path, reason))
    return found


def _fault(path: Path, archive: Path, md5: str) -> str:
    """What is wrong with an idx file; nothing if it is as its header and its archive say."""
    if reason := _head(path)[1]:
        return reason
    if has_checksum(archive, md5) and not _same(path, archive):
        return f"its contents are not those of {archive.name}"
    return ""


def _head(path: Path) -> tuple[list[int], str]:
    """The sizes in the header of an idx file, and what is wrong with it; nothing if it fits."""
    if not path.is_file():
        return [], "there is no such file"
    dimensions = 3 if "idx3" in path.name else 1
    with path.open("rb") as file:
        head = file.read(4 * (dimensions + 1))
    if len(head) < 4 * (dimensions + 1) or head[:4] != bytes((0, 0, 8, dimensions)):
        return [], "it does not start like an idx file"
    sizes = [int.from_bytes(head[at : at + 4], "big") for at in range(4, len(head), 4)]
    wanted, came = len(head) + math.prod(sizes), path.stat().st_size
    fits = wanted == came
    return sizes, "" if fits else f"it has {came} bytes and not {wanted}, as its header says"


def _read(path: Path) -> Tensor:
    sizes = _head(path)[0]
    values = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
    return values[4 * (len(sizes) + 1) :].view(sizes)


def _same(path: Path, archive: Path) -> bool:
    with path.open("rb") as file, gzip.open(archive) as packed:
        while chunk := packed.read(_CHUNK):
            if file.read(len(chunk)) != chunk:
                return False
        return not file.read(1)


def _torchvision(kind: str) -> Any:
    from torchvision import datasets

    return getattr(datasets, kind)


# MNIST: 70000 handwritten digits, 28 x 28 in grey, in torchvision's layout.
#
# LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition. 1998.


DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
MNIST = idx_source("mnist", "MNIST", "MNIST", DIGITS)


# Fashion-MNIST: 70000 pictures of clothes, 28 x 28 in grey, in torchvision's layout.
#
# Xiao, Rasul, Vollgraf: Fashion-MNIST: a novel image dataset for benchmarking machine learning
# algorithms. arXiv:1708.07747.


CLOTHES = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
FASHION_MNIST = idx_source("fashion_mnist", "Fashion-MNIST", "FashionMNIST", CLOTHES)
