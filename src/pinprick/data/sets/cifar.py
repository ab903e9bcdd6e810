"""CIFAR-10 and CIFAR-100: 60000 pictures of ten or a hundred things, 32 x 32 in colour.

Krizhevsky: Learning multiple layers of features from tiny images. 2009.

The files are pickles in torchvision's layout, and torchvision's own classes read them. A pickle can
run code. Torchvision opens one only if its checksum is the published one.
"""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pinprick.data.dataset import Dataset, read_split
from pinprick.data.fetch import Progress, fetch, has_checksum
from pinprick.data.pictures import Unreadable
from pinprick.data.source import Source, incomplete


def _cifar(name: str, title: str, kind: str, place: str, classes: int) -> Source:
    """The set that the class ``kind`` of torchvision reads."""
    return Source(
        name=name,
        title=title,
        counts={"train": 50_000, "test": 10_000},
        classes=classes,
        shape=(3, 32, 32),
        place=place,
        load=partial(_load, name, kind),
        get=partial(_get, kind),
        faults=partial(_faults, kind),
    )


def _load(name: str, kind: str, root: Path, split: str) -> Dataset:
    classes: list[str] = []

    def read(part: str) -> tuple[Tensor, Tensor]:
        try:
            found = _torchvision(kind)(root, train=part == "train")
        except RuntimeError:
            raise incomplete(name, root, _faults(kind, root)) from None
        classes[:] = [word.replace("_", " ") for word in found.classes]
        pixels = torch.from_numpy(found.data).permute(0, 3, 1, 2).contiguous()
        return pixels, torch.tensor(found.targets)

    pixels, labels = read_split(name, split, read)
    return Dataset.in_memory(name, tuple(classes), pixels, labels, f"{name}/{split}")


def _get(kind: str, root: Path, progress: Progress | None) -> None:
    """Fetch the archive and unpack it, unless every file is there and undamaged."""
    from torchvision.datasets.utils import extract_archive

    if not _faults(kind, root):
        return
    known = _torchvision(kind)
    fetch([known.url], root / known.filename, known.tgz_md5, progress=progress)
    extract_archive(root / known.filename, root)


def _faults(kind: str, root: Path) -> list[Unreadable]:
    known = _torchvision(kind)
    meta = (known.meta["filename"], known.meta["md5"])
    found = []
    for name, md5 in (*known.train_list, *known.test_list, meta):
        path = root / known.base_folder / name
        if not path.is_file():
            found.append(Unreadable(path, "there is no such file"))
        elif not has_checksum(path, md5):
            found.append(Unreadable(path, "its checksum is not the published one"))
    return found


def _torchvision(kind: str) -> Any:
    from torchvision import datasets

    return getattr(datasets, kind)


CIFAR10 = _cifar("cifar10", "CIFAR-10", "CIFAR10", "cifar-10-batches-py", 10)
CIFAR100 = _cifar("cifar100", "CIFAR-100", "CIFAR100", "cifar-100-python", 100)
