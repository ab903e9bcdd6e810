"""Projections onto the balls of l0, l1, l2 and l-infinity around zero, one radius for each image.

Changes have the shape (batch, elements). What is projected twice stays where it is.
"""

from typing import Literal

import torch
from torch import Tensor

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


def largest(values: Tensor, count: Tensor, most: int) -> Tensor:
    """A mask of the ``count`` largest of each row, exactly so many; of equal ones the first.

    Args:
        values: What is compared, (batch, elements).
        count: How many to choose in each row.
        most: A bound on the counts, so that nothing has to wait for them.
    """
    most, number = max(1, min(most, values.shape[1])), count.long().unsqueeze(1)
    top = values.topk(most, dim=1).values
    least = top.gather(1, (number - 1).clamp(0, most - 1))
    room = number - (top > least).sum(dim=1, keepdim=True)  # for those that equal the least
    level = values == least
    first = level.cumsum(dim=1, dtype=torch.int32) <= room
    return ((values > least) | (level & first)) & (number > 0)


def into_l0(delta: Tensor, count: Tensor, most: int) -> Tensor:
    """The nearest point with ``count`` entries that are not zero; of equal ones the first are kept.

    ``most`` bounds the counts. On a CPU it is looked at first whether any are equal.
    """
    sizes = delta.abs()
    if delta.is_cpu:
        number = count.long().unsqueeze(1)
        top, places = sizes.topk(min(most + 1, delta.shape[1]), dim=1)
        last, next_one = (top.gather(1, (number + i).clamp(0, top.shape[1] - 1)) for i in (-1, 0))
        if not ((last == next_one) & (last > 0) & (number < delta.shape[1])).any():
            inside = torch.arange(top.shape[1], device=delta.device) < number
            kept = delta.gather(1, places).where(inside, 0)
            return torch.zeros_like(delta).scatter_(1, places, kept)
    return torch.where(largest(sizes, count, most), delta, 0)


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
