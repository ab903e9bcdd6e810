"""The splits of a set: ``train``, ``test``, or ``both``, where test follows train."""

from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor

from pinprick.errors import BadInput, UnknownName

Split = Literal["train", "test", "both"]
SPLITS: tuple[str, ...] = get_args(Split)


class NoSplit(BadInput):
    """A split that a set does not have, though it may have the other."""


def parts_of(split: str) -> tuple[str, ...]:
    """``("train", "test")`` for both of them, or the one that is named."""
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    return ("train", "test") if split == "both" else (split,)


def read_parts(
    name: str, split: str, read: Callable[[str], tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """Pixels and labels of a split of the set ``name``, where ``read`` gives those of one part."""
    pairs = {part: read(part) for part in parts_of(split)}
    for part, (some, theirs) in pairs.items():
        if len(some) != len(theirs):  # each part by itself, as a sum may come out right
            raise BadInput(f"{name}/{part} has {len(some)} images and {len(theirs)} labels")
    pixels, labels = zip(*pairs.values(), strict=True)
    return torch.cat(pixels), torch.cat(labels)
