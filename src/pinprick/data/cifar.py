"""What both CIFAR sets share: pickles, read by torchvision's own classes.

A pickle can run code. Torchvision opens one only if its checksum is the published one.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pinprick.data.dataset import Dataset
from pinprick.data.split import read_parts
from pinprick.errors import BadInput


def load_cifar(name: str, kind: Any, root: Path, split: str, *, download: bool) -> Dataset:
    """The set that ``kind``, a class of torchvision, reads from ``root``."""
    classes: list[str] = []

    def read(part: str) -> tuple[Tensor, Tensor]:
        try:
            found = kind(root, train=part == "train", download=download)
        except RuntimeError as error:
            raise BadInput(
                f"{name} is not whole in {root} ({' '.join(str(error).split())}); "
                f"get it with: pinprick data get {name} --root {root}"
            ) from None
        classes[:] = [word.replace("_", " ") for word in found.classes]
        pixels = torch.from_numpy(found.data).permute(0, 3, 1, 2).contiguous()
        return pixels, torch.tensor(found.targets)

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
