"""Random numbers that belong to an image, not to a batch.

A draw is addressed, not stateful: it is a hash of the seed, the image's own number, the step,
what the draw is for, and the position in it. So an image draws the same numbers alone, in any
batch, on any worker, and after a crash.
"""

import math
import zlib

import torch
from torch import Tensor

from pinprick.types import Labels, Rows


class Streams:
    """One endless stream of random numbers for each image."""

    def __init__(self, seed: int, ids: Labels) -> None:
        self._keys = _mix(ids + _mix(torch.tensor(_signed(seed), device=ids.device)))

    def __getitem__(self, rows: Rows) -> "Streams":
        cut = object.__new__(Streams)
        cut._keys = self._keys[rows]
        return cut

    def uniform(self, *shape: int, step: int, use: str) -> Tensor:
        """Numbers in [0, 1) of shape ``(batch, *shape)``; the same for the same step and use."""
        return self._bits(shape, step, use).float().div(1 << 24)

    def normal(self, *shape: int, step: int, use: str) -> Tensor:
        """Standard normal numbers of shape ``(batch, *shape)``, by Box and Muller."""
        radius = self.uniform(*shape, step=step, use=f"{use}, radius")
        angle = self.uniform(*shape, step=step, use=f"{use}, angle")
        return (-2 * (1 - radius).log()).sqrt() * (2 * math.pi * angle).cos()

    def integers(self, high: int, *shape: int, step: int, use: str) -> Tensor:
        """Whole numbers in [0, high) of shape ``(batch, *shape)``; ``high`` at most 2**24."""
        return (self._bits(shape, step, use) * high) >> 24

    def _bits(self, shape: tuple[int, ...], step: int, use: str) -> Tensor:
        """24 random bits for each place, as int64."""
        salt = zlib.crc32(use.encode()) * 2**20 + step
        key = _mix(self._keys + salt)
        place = torch.arange(math.prod(shape), device=key.device)
        bits = _mix(key.unsqueeze(1) + place * _ODD)
        return ((bits >> 40) & 0xFFFFFF).view(len(key), *shape)


_ODD = -7046029254386353131  # the 64-bit golden ratio, as a signed number


def _signed(seed: int) -> int:
    """Any whole number as one that fits a signed 64-bit integer."""
    return (seed + 2**63) % 2**64 - 2**63


def _mix(x: Tensor) -> Tensor:
    """Splitmix64's finaliser on int64, where arithmetic wraps and shifts are made logical."""
    x = x * _ODD
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    return x ^ ((x >> 31) & 0x1FFFFFFFF)
