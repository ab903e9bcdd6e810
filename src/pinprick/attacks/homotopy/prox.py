"""The proximal step of the count of changed elements inside a box, exactly, and when it wakes up.

    prox(v) = argmin over d in the box of  |d - v|^2 / (2 a) + lambda * |d|_0

An element stays at zero or goes to ``c``, the nearest point of the box to ``v``; going there saves
``gain = v^2 - (c - v)^2``, so it goes where ``gain > 2 a lambda``. With a limit on the count those
of the largest gains go. The box is one of the change: ``low <= d <= high``, zero inside.
"""

from typing import NamedTuple

import torch

from pinprick.parts.largest import open_largest
from pinprick.types import Counts, Images, PerImage, Rows


class Box(NamedTuple):
    """How far each element may fall and rise."""

    low: Images
    high: Images

    def clip(self, delta: Images) -> Images:
        return delta.clamp(self.low, self.high)

    def cut(self, rows: Rows) -> "Box":
        return Box(self.low[rows], self.high[rows])


def prox(points: Images, rate: PerImage, lam: PerImage, most: Counts, box: Box) -> Images:
    """The changes nearest to ``points`` that pay for their count, at most ``most`` elements."""
    near = box.clip(points)
    spare = (_gain(points, near) - (2 * rate * lam).view(-1, 1, 1, 1)).flatten(1)
    keep = spare > 0
    crowded = keep.sum(dim=1) > most
    if crowded.any():
        keep[crowded] = open_largest(spare[crowded], most[crowded], int(most[crowded].max()))
    return torch.where(keep.view_as(near), near, 0)


def waking_lambda(delta: Images, grad: Images, rate: PerImage, box: Box) -> PerImage:
    """The ``lambda`` below which a step against ``grad`` changes an element that is zero so far."""
    points = -rate.view(-1, 1, 1, 1) * grad
    gain = _gain(points, box.clip(points)).masked_fill(delta != 0, 0)
    return gain.flatten(1).amax(dim=1) / (2 * rate)


def _gain(points: Images, near: Images) -> Images:
    return near * (2 * points - near)  # points^2 - (near - points)^2, without cancelling
