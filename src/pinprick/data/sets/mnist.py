"""MNIST and Fashion-MNIST: 70000 pictures each, 28 x 28 in grey, in idx files.

MNIST: LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition.
1998. Fashion-MNIST: Xiao, Rasul, Vollgraf: Fashion-MNIST: a novel image dataset for benchmarking
machine learning algorithms. arXiv:1708.07747.

The layout is torchvision's, but torchvision's own classes do not read the files here. They check
only that the files exist, though one may have been cut short, and they prefer a cache that old
versions left in ``processed``.

The first 64 test images of Fashion-MNIST come with the package as ``fashion_sample``. They are
copyright of Zalando SE, under the MIT licence, which lies beside the images.
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

from pinprick.data.dataset import Dataset, read_split
from pinprick.data.fetch import Progress, fetch, has_checksum
from pinprick.data.pictures import Unreadable
from pinprick.data.sets.tensors import read_tensors
from pinprick.data.source import Source, incomplete
from pinprick.errors import BadInput
from pinprick.files import atomic_write

SAMPLE_FILE = Path(__file__).parent / "files" / "fashion_sample.safetensors"
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_CLOTHES = (
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
_STEMS = {"train": "train", "test": "t10k"}
_CHUNK = 1 << 20


def _idx(name: str, title: str, kind: str, classes: Sequence[str]) -> Source:
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
        faults = [Unreadable(path, reason) for path in paths if (reason := _read_header(path)[1])]
        if faults:
            raise incomplete(f"{name}/{part}", root, faults)
        pixels, labels = map(_read, paths)
        return pixels.unsqueeze(1), labels.long()

    pixels, labels = read_split(name, split, read)
    return Dataset.in_memory(name, classes, pixels, labels, f"{name}/{split}")


def _get(kind: str, root: Path, progress: Progress | None) -> None:
    """Fetch the archives of files that are missing or damaged, and unpack them."""
    known = _torchvision(kind)
    folder = root / kind / "raw"
    for archive, md5 in known.resources:
        path = folder / Path(archive).stem
        if _find_fault(path, folder / archive, md5):
            urls = [f"{mirror}{archive}" for mirror in known.mirrors]
            fetch(urls, folder / archive, md5, progress=progress)
            with (
                gzip.open(folder / archive) as packed,
                atomic_write(path) as unpacked,
                unpacked.open("wb") as file,
            ):
                shutil.copyfileobj(packed, file)


def _faults(kind: str, root: Path) -> list[Unreadable]:
    folder = root / kind / "raw"
    found = []
    for archive, md5 in _torchvision(kind).resources:
        path = folder / Path(archive).stem
        if reason := _find_fault(path, folder / archive, md5):
            found.append(Unreadable(path, reason))
    return found


def _find_fault(path: Path, archive: Path, md5: str) -> str:
    """How an idx file differs from its header and its archive; empty if it does not."""
    if reason := _read_header(path)[1]:
        return reason
    if has_checksum(archive, md5) and not _same_content(path, archive):
        return f"its contents are not those of {archive.name}"
    return ""


def _read_header(path: Path) -> tuple[list[int], str]:
    """The sizes in the header of an idx file, and what is wrong with it; empty if nothing."""
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
    sizes = _read_header(path)[0]
    values = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
    return values[4 * (len(sizes) + 1) :].view(sizes)


def _same_content(path: Path, archive: Path) -> bool:
    with path.open("rb") as file, gzip.open(archive) as packed:
        while chunk := packed.read(_CHUNK):
            if file.read(len(chunk)) != chunk:
                return False
        return not file.read(1)


def _torchvision(kind: str) -> Any:
    from torchvision import datasets

    return getattr(datasets, kind)


def _load_sample(root: Path, split: str) -> Dataset:
    if split == "train":
        raise BadInput("fashion_sample has no training split; fashion_mnist has one")
    pixels, labels, _ = read_tensors(SAMPLE_FILE)
    # numbered as in fashion_mnist/test, whose first images they are
    return Dataset.in_memory("fashion_sample", _CLOTHES, pixels, labels, "fashion_sample/test")


def _get_sample(root: Path, progress: Progress | None) -> None:
    """Nothing to do: it comes with the package."""


def _sample_faults(root: Path) -> list[Unreadable]:
    missing = Unreadable(SAMPLE_FILE, "there is no such file")
    return [] if SAMPLE_FILE.is_file() else [missing]


MNIST = _idx("mnist", "MNIST", "MNIST", _DIGITS)
FASHION_MNIST = _idx("fashion_mnist", "Fashion-MNIST", "FashionMNIST", _CLOTHES)
FASHION_SAMPLE = Source(
    name="fashion_sample",
    title="Fashion-MNIST, 64 of its test images",
    counts={"test": 64},
    classes=len(_CLOTHES),
    shape=(1, 28, 28),
    place="",
    load=_load_sample,
    get=_get_sample,
    faults=_sample_faults,
)
