"""The splits of a set: ``train``, ``test``, or ``both``, where test follows train."""

from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor

from pinprick.errors import UnknownName

Split = Literal["train", "test", "both"]
SPLITS: tuple[str, ...] = get_args(Split)


def parts_of(split: str) -> tuple[str, ...]:
    """``("train", "test")`` for both of them, or the one that is named."""
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    return ("train", "test") if split == "both" else (split,)


def read_parts(split: str, read: Callable[[str], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Pixels and labels of a split, where ``read`` gives those of one part."""
    pairs = [read(part) for part in parts_of(split)]
    pixels, labels = zip(*pairs, strict=True)
    return torch.cat(pixels), torch.cat(labels)
