"""Squares of pixels that change together or not at all."""

import torch
from torch import Tensor
from torch.nn import functional as F


def shrink_groups(change: Tensor, by: float, side: int) -> Tensor:
    """Every group of ``side`` x ``side`` pixels with its l2 norm less by ``by``, or zero.

    The proximal step of ``by`` times the sum of the norms of the groups, which hold all channels
    and tile each image, smaller at its far edges.
    """
    height, width = change.shape[2:]
    squares = F.pad(change.square().sum(dim=1), (0, -width % side, 0, -height % side))
    tall, wide = squares.shape[1] // side, squares.shape[2] // side
    norm = squares.view(-1, tall, side, wide, side).sum(dim=(2, 4)).sqrt()
    factor = (1 - by / norm.clamp_min(torch.finfo(norm.dtype).tiny)).clamp_min(0)
    factor = factor.repeat_interleave(side, dim=1).repeat_interleave(side, dim=2)
    return change * factor[:, None, :height, :width]
