"""Projections onto the balls of l0, l1, l2 and l-infinity around zero, one radius for each image.

Changes have the shape (batch, elements). What is projected twice stays where it is.
"""

from typing import Literal

import torch
from torch import Tensor

from pinprick.parts.largest import open_largest
from pinprick.types import PerImage

Norm = Literal["l0", "l1", "l2", "linf"]
NORMS: tuple[Norm, ...] = ("l0", "l1", "l2", "linf")


def size(delta: Tensor, norm: Norm) -> PerImage:
    """The norm of each row; for l0, how many entries are not zero."""
    if norm == "l0":
        return delta.sign().abs().sum(dim=1)  # on a CPU much faster than to count booleans
    if norm == "l1":
        return delta.abs().sum(dim=1)
    return delta.square().sum(dim=1).sqrt() if norm == "l2" else delta.abs().amax(dim=1)


def into_l0(delta: Tensor, count: Tensor, most: int) -> Tensor:
    """The nearest point with ``count`` entries that are not zero; of equal ones the first are kept.

    ``most`` bounds the counts.
    """
    return torch.where(open_largest(delta.abs(), count, most), delta, 0)


def into_l1(delta: Tensor, radius: PerImage) -> Tensor:
    """The nearest point of the l1 ball: all entries drawn towards zero by the same amount."""
    sizes = delta.abs().sort(dim=1, descending=True).values
    sums = sizes.cumsum(dim=1)
    rank = torch.arange(1, sizes.shape[1] + 1, device=delta.device)
    kept = (sizes * rank > sums - radius.unsqueeze(1)).sum(dim=1, keepdim=True).clamp_min(1)
    drawn = (sums.gather(1, kept - 1) - radius.unsqueeze(1)) / kept
    nearest = delta.sign() * (delta.abs() - drawn).clamp_min(0)
    return torch.where(sums[:, -1:] > radius.unsqueeze(1), nearest, delta)


def into_l2(delta: Tensor, radius: PerImage) -> Tensor:
    """The nearest point of the l2 ball."""
    tiny = torch.finfo(delta.dtype).tiny
    return delta * (radius / size(delta, "l2").clamp_min(tiny)).clamp_max(1).unsqueeze(1)


def into_linf(delta: Tensor, radius: PerImage) -> Tensor:
    """The nearest point of the l-infinity ball."""
    return delta.clamp(-radius.unsqueeze(1), radius.unsqueeze(1))
