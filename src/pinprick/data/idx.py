"""What the MNIST family shares: four idx files, which torchvision's own classes read.

Torchvision asks only whether the files are there. Here they are looked into as well, since one
that was cut short while it was unpacked stays there for good.
"""

import gzip
import math
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from pinprick.data.dataset import Dataset
from pinprick.data.fetch import Progress, fetch, has_checksum
from pinprick.data.pictures import Unreadable
from pinprick.data.source import Source, listed
from pinprick.data.split import read_parts
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
    def read(part: str) -> tuple[Tensor, Tensor]:
        try:
            found = _torchvision(kind)(root, train=part == "train")
        except Exception as error:  # a damaged file makes it raise anything
            stem = _STEMS[part]
            faults = [file for file in _faults(kind, root) if file.path.name.startswith(stem)]
            if not faults and "not found" not in str(error):
                raise
            raise BadInput(
                f"{name}/{part} is not whole in {root} ({listed(faults)}); "
                f"get it with: pinprick data get {name} --root {root}"
            ) from None
        return found.data.unsqueeze(1), found.targets

    pixels, labels = read_parts(split, read)
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
    if not path.is_file():
        return "there is no such file"
    dimensions = 3 if "idx3" in path.name else 1
    with path.open("rb") as file:
        head = file.read(4 * (dimensions + 1))
    if len(head) < 4 * (dimensions + 1) or head[:4] != bytes((0, 0, 8, dimensions)):
        return "it does not start like an idx file"
    sizes = [int.from_bytes(head[at : at + 4], "big") for at in range(4, len(head), 4)]
    wanted, came = len(head) + math.prod(sizes), path.stat().st_size
    if wanted != came:
        return f"it has {came} bytes and not {wanted}, as its header says"
    if has_checksum(archive, md5) and not _same(path, archive):
        return f"its contents are not those of {archive.name}"
    return ""


def _same(path: Path, archive: Path) -> bool:
    with path.open("rb") as file, gzip.open(archive) as packed:
        while chunk := packed.read(_CHUNK):
            if file.read(len(chunk)) != chunk:
                return False
        return not file.read(1)


def _torchvision(kind: str) -> Any:
    from torchvision import datasets

    return getattr(datasets, kind)
