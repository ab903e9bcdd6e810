"""Random numbers that belong to an image, not to a batch.

A draw has no state: it is a hash of the seed, the image's id, the step, the use, and the position
in the draw. So an image gets the same numbers alone, in any batch, on any worker, and after a
crash.

A hash is about thirty small operations, and starting them takes a GPU longer than doing them. So
where small draws follow each other step by step, the next ones are computed together and stored.
That changes no number.
"""

import math
import zlib

import torch
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.types import Labels, Rows

LARGEST_NORMAL = 5.8  # of ``Streams.normal``, which draws from 24 bits

_AHEAD = 2**22  # most numbers computed together, unless one draw alone is more
_AHEAD_ON_CPU = 2**16  # where starting costs little and they should stay in the cache
_KEPT = 6  # uses whose numbers are stored


class Streams(BatchRows):
    """One endless stream of random numbers per image."""

    def __init__(self, seed: int, ids: Labels) -> None:
        self._source = _Source(_mix(ids + _mix(torch.tensor(_signed(seed), device=ids.device))))
        self._rows: Labels | None = None  # of the source; None for all of them

    def __getitem__(self, rows: Rows | slice) -> "Streams":
        keys, cut = self._source.keys, object.__new__(Streams)
        mine = torch.arange(len(keys), device=keys.device) if self._rows is None else self._rows
        mine = mine[rows]
        cut._source, cut._rows = self._source, mine
        if 2 * len(mine) < len(keys):  # so few that drawing all would be slower
            cut._source, cut._rows = _Source(keys[mine]), None
        return cut

    def reseeded(self, number: int) -> "Streams":
        """Other streams for the same images; each ``number`` gives another."""
        keys = self._source.keys if self._rows is None else self._source.keys[self._rows]
        other = object.__new__(Streams)
        other._source = _Source(_mix(keys + _mix(torch.tensor(number, device=keys.device))))
        other._rows = None
        return other

    def uniform(self, *shape: int, step: int | Tensor, use: str) -> Tensor:
        """Numbers in [0, 1) of shape ``(batch, *shape)``; the same for the same step and use.

        The step may be a tensor of one whole number, so that a recording can be replayed.
        """
        return self._bits(shape, step, use) * _UNIT

    def normal(self, *shape: int, step: int, use: str) -> Tensor:
        """Standard normal numbers of shape ``(batch, *shape)``, by Box and Muller."""
        radius = self.uniform(*shape, step=step, use=f"{use}, radius")
        angle = self.uniform(*shape, step=step, use=f"{use}, angle")
        return (-2 * (1 - radius).log()).sqrt() * (2 * math.pi * angle).cos()

    def integers(self, high: int, *shape: int, step: int | Tensor, use: str) -> Tensor:
        """Whole numbers in [0, high) of shape ``(batch, *shape)``; ``high`` at most 2**24."""
        return (self._bits(shape, step, use) * high) >> 24

    def _bits(self, shape: tuple[int, ...], step: int | Tensor, use: str) -> Tensor:
        """24 random bits per position, as int64; must not be changed in place."""
        bits = self._source.bits(math.prod(shape), step, use, self._rows)
        return bits.view(len(bits), *shape)


class _Source:
    """The keys of some images, and the numbers that were drawn from them last.

    Numbers are stored by use and size of the draw, as the range of steps and a tensor of shape
    (image, step, position). While a use goes on step by step, each draw covers twice as many steps
    as the last, so that few numbers are wasted when it ends.
    """

    def __init__(self, keys: Tensor) -> None:
        self.keys = keys
        self._kept: dict[tuple[str, int], tuple[range, Tensor]] = {}

    def bits(self, count: int, step: int | Tensor, use: str, rows: Labels | None) -> Tensor:
        """24 random bits for each of ``count`` positions, for all images or some rows of them."""
        salt = zlib.crc32(use.encode()) * 2**20
        if isinstance(step, Tensor):  # of one value, which the host does not know
            return _hash(self.keys if rows is None else self.keys[rows], step + salt, count)[:, 0]
        ahead = _AHEAD_ON_CPU if self.keys.is_cpu else _AHEAD
        most = ahead // max(1, len(self.keys) * count)
        if most < 2:
            keys = self.keys if rows is None else self.keys[rows]
            return _hash(keys, _salts(keys, salt + step, 1), count)[:, 0]
        steps, bits = self._kept.pop((use, count), (range(0), self.keys))
        if step not in steps:
            soon = 0 <= step - steps.stop <= len(steps)
            steps = range(step, step + (min(2 * len(steps), most) if soon and steps else 1))
            bits = _hash(self.keys, _salts(self.keys, salt + step, len(steps)), count)
        self._kept[use, count] = steps, bits
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]  # the one not used for longest
        drawn = bits[:, step - steps.start]
        return drawn if rows is None else drawn[rows]


_ODD = -7046029254386353131  # the 64-bit golden ratio, as a signed number
_UNIT = torch.tensor(2**-24, dtype=torch.float32)


def _signed(seed: int) -> int:
    """Any whole number as one that fits a signed 64-bit integer."""
    return (seed + 2**63) % 2**64 - 2**63


def _salts(keys: Tensor, first: int, count: int) -> Tensor:
    """Consecutive salts, on the device of the keys."""
    return torch.arange(first, first + count, device=keys.device)


def _hash(keys: Tensor, salts: Tensor, count: int) -> Tensor:
    """24 random bits per key, per salt, and per position."""
    key = _mix(keys.unsqueeze(1) + salts)
    position = torch.arange(count, device=keys.device) * _ODD
    bits = _stir(key.unsqueeze(2) + position)  # what _mix does after it leaves the upper bits alone
    return bits.bitwise_right_shift_(40).bitwise_and_(0xFFFFFF)


def _mix(x: Tensor) -> Tensor:
    """Splitmix64's finaliser on int64, where arithmetic wraps and shifts are made logical."""
    x = _stir(x)
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


def _stir(x: Tensor) -> Tensor:
    """All steps of ``_mix`` but the last."""
    x = x * _ODD
    x = x.bitwise_xor_((x >> 30).bitwise_and_(0x3FFFFFFFF)).mul_(-4658895280553007687)
    return x.bitwise_xor_((x >> 27).bitwise_and_(0x1FFFFFFFFF)).mul_(-7723592293110705685)
