"""What the MNIST family shares: idx files, read by torchvision's own classes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pinprick.data.dataset import Dataset
from pinprick.data.split import read_parts
from pinprick.errors import BadInput


def load_idx(
    name: str, kind: Any, classes: Sequence[str], root: Path, split: str, *, download: bool
) -> Dataset:
    """The set that ``kind``, a class of torchvision, reads from ``root``."""

    def read(part: str) -> tuple[Tensor, Tensor]:
        try:
            found = kind(root, train=part == "train", download=download)
        except (AssertionError, KeyError, TypeError, ValueError, RuntimeError) as error:
            if "not found" in str(error):
                raise BadInput(
                    f"{name} is not in {root}; get it with: pinprick data get {name} --root {root}"
                ) from None
            raise BadInput(_damaged(name, kind, root, part)) from error
        return found.data.unsqueeze(1), found.targets

    pixels, labels = read_parts(split, read)
    return Dataset(
        name=name,
        classes=tuple(classes),
        labels=labels,
        pixels=pixels,
        files=(),
        indices=torch.arange(len(labels)),
        source=f"{name}/{split}",
    )


def _damaged(name: str, kind: Any, root: Path, part: str) -> str:
    stem = "train" if part == "train" else "t10k"
    return (
        f"a file {stem}-*-ubyte of {name} in {root / kind.__name__ / 'raw'} is damaged; "
        f"delete them and run: pinprick data get {name} --root {root}"
    )
