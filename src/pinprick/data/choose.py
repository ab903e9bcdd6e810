"""The images that a subset names, taken from their set.

A random draw takes the images whose numbers have the smallest hashes under its seed, in order. It
needs no generator, whose numbers change between versions; a smaller draw is part of a larger one,
and an image is drawn or not whatever was left out before.
"""

import hashlib
from pathlib import Path

import torch

from pinprick.data import load_data
from pinprick.data.classes import find_class
from pinprick.data.dataset import Dataset
from pinprick.data.index_file import read_index
from pinprick.data.subset import Draw, Listed, OfClass, Range, Step, Subset, parse
from pinprick.errors import BadInput
from pinprick.types import Labels, Mask


def load_subset(
    subset: str | Subset, *, root: str | Path | None = None, download: bool = False
) -> Dataset:
    """The images that ``subset`` names, as in "cifar10/test[0:100]".

    Args:
        subset: Which images of which set; ``pinprick.data.subset`` says how it is written.
        root: The folder that sets are kept in; as for ``load_data``.
        download: Whether to fetch what is not there.
    """
    subset = parse(subset) if isinstance(subset, str) else subset
    data = load_data(subset.name, root=root, split=subset.split, download=download)
    for step in subset.steps:
        data = choose(data, step)
    return data


def choose(data: Dataset, step: Step) -> Dataset:
    """Some of the images, each with the number it has."""
    match step:
        case Range():
            if max(step.stop or 0, step.start + 1) > len(data):
                end = step.start if step.stop is None else step.stop
                raise BadInput(f"there is no image {end - 1} among {len(data)} of {data.source}")
            every = min(step.step, len(data))  # torch does not take a longer one
            return data[step.start : step.stop : every]
        case OfClass():
            names, count = data.classes, len(data.classes) or None
            numbers = torch.tensor(
                [find_class(name, names, count=count, owner=data.name) for name in step.classes]
            )
            return _some(data, torch.isin(data.labels, numbers), f"class={'|'.join(step.classes)}")
        case Draw():
            if step.count > len(data):
                raise BadInput(f"cannot draw {step.count} from {len(data)} images of {data.source}")
            return data[_drawn(data, step)]
        case Listed():
            return data[_positions(data, read_index(Path(step.path), data.source))]


def _some(data: Dataset, rows: Mask, what: str) -> Dataset:
    if not rows.any():
        raise BadInput(f"no image of {data.source} is left by [{what}]")
    return data[rows]


def _drawn(data: Dataset, step: Draw) -> Labels:
    def key(row: int) -> bytes:
        return hashlib.sha256(f"{step.seed}:{numbers[row]}".encode()).digest()

    numbers = data.indices.tolist()
    rows = sorted(range(len(data)), key=key)[: step.count]
    return torch.tensor(sorted(rows), dtype=torch.long)


def _positions(data: Dataset, numbers: list[int]) -> Labels:
    place = {number: row for row, number in enumerate(data.indices.tolist())}
    for number in numbers:
        if number not in place:
            raise BadInput(f"the index lists image {number}, which is not in {data.source} as cut")
    return torch.tensor([place[number] for number in numbers], dtype=torch.long)
