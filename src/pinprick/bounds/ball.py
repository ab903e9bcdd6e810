"""The changes that a sub-problem allows, and the largest value of linear functions over them.

    max of a linear function c of d  =  sum over slots of the largest gain of a unit in the tile,
                                        gain_u = sum over i in u of max(c_i low_i, c_i high_i)

Slots with the same tile take the largest, the second largest, … gain. This is exact. Linear
functions have the shape (problem, row, value), with the values of all slots, units and channels.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pinprick.bounds.subproblems import SubProblems
from pinprick.bounds.tiles import Tiles


@dataclass(frozen=True, eq=False)
class Ball:
    """The changes of sub-problems.

    Attributes:
        unit: Units of all tiles, slot by slot.
        low, high: Limits of their values.
        none: Where a tile has no more units.
        rank: How many earlier slots have the same tile.
        repeated: The sub-problems with a tile in several slots.
        units: Units of an image.
    """

    unit: Int[Tensor, "problem slot_unit"]
    low: Float[Tensor, "problem slot unit channel"]
    high: Float[Tensor, "problem slot unit channel"]
    none: Bool[Tensor, "problem slot unit"]
    rank: Int[Tensor, "problem slot"]
    repeated: Int[Tensor, " some"]
    units: int

    @classmethod
    def of(cls, problems: SubProblems, tiles: Tiles, low: Tensor, high: Tensor) -> "Ball":
        size = int(tiles.sizes[problems.tile].max())
        unit = tiles.members[problems.tile][:, :, :size]
        image, rank = problems.image[:, None, None], problems.rank
        return cls(
            unit=unit.flatten(1),
            low=torch.maximum(low[image, unit], problems.low.unsqueeze(2)),
            high=torch.minimum(high[image, unit], problems.high.unsqueeze(2)),
            none=unit == tiles.units,
            rank=rank,
            repeated=rank.any(dim=1).nonzero().squeeze(1),
            units=tiles.units,
        )

    def _gains(self, slopes: Tensor) -> Tensor:
        """The most that each unit adds to linear functions, (problem, row, slot, unit)."""
        wide = slopes.view(*slopes.shape[:2], *self.low.shape[1:])
        gains = torch.maximum(wide * self.low.unsqueeze(1), wide * self.high.unsqueeze(1))
        return gains.sum(dim=4).masked_fill(self.none.unsqueeze(1), -torch.inf)

    def most(self, slopes: Tensor) -> Tensor:
        """The maximum of linear functions, (problem, row)."""
        gains = self._gains(slopes)
        best = gains.amax(dim=3)
        if len(self.repeated):
            best[self.repeated] = self._ranked(gains[self.repeated], self.rank[self.repeated])[0]
        return best.sum(dim=2)

    @staticmethod
    def _ranked(gains: Tensor, rank: Tensor) -> tuple[Tensor, Tensor]:
        """The gain of each slot and its unit, the better units for the earlier slots of a tile."""
        top = gains.topk(min(gains.shape[2], gains.shape[3]), dim=3)
        at = rank[:, None, :, None].expand(*gains.shape[:3], 1)
        return top.values.gather(3, at).squeeze(3), top.indices.gather(3, at).squeeze(3)

    def best(self, slopes: Tensor) -> tuple[Tensor, Tensor]:
        """Where one linear function per sub-problem is largest, and its spread per value."""
        at = self._ranked(self._gains(slopes.unsqueeze(1)), self.rank)[1].squeeze(1)
        wide = slopes.view(self.low.shape)
        at = at[:, :, None, None].expand(-1, -1, 1, wide.shape[3])
        wide, low, high = (each.gather(2, at).squeeze(2) for each in (wide, self.low, self.high))
        unit = self.unit.view(self.none.shape).gather(2, at[:, :, :, 0])
        change = low.new_zeros(len(low), self.units + 1, low.shape[2])
        values = torch.where(wide > 0, high, low)
        change.scatter_(1, unit.expand(-1, -1, low.shape[2]), values)
        spread = (high - low) * (wide.abs() + wide.abs().amax(dim=(1, 2), keepdim=True) / 8 + 1e-9)
        return change[:, :-1].transpose(1, 2), spread
