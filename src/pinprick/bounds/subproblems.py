"""Sub-problems of a certificate: where the changes of an image lie, and within which values.

A sub-problem of t changes has t slots. A slot is one changed unit somewhere in its tile. Slots of
one sub-problem have the same tile, and then different units, or tiles that do not overlap. Every
choice of at most t units can be filled up to t units that may change, and those lie in exactly one
sub-problem of ``all_subproblems``, and in one of the parts that ``split`` makes of that.
"""

from dataclasses import dataclass, replace
from itertools import chain, combinations_with_replacement
from math import comb

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.bounds.tiles import Tiles


@dataclass(frozen=True, eq=False)
class SubProblems(BatchRows):
    """One row per sub-problem.

    Attributes:
        image: The image of each.
        tile: The tile of each slot.
        low, high: The values of the change in each slot and channel lie between these, besides the
            limits of the image. Only slots of a single unit have limits below 1.
    """

    image: Int[Tensor, " problem"]
    tile: Int[Tensor, "problem slot"]
    low: Float[Tensor, "problem slot channel"]
    high: Float[Tensor, "problem slot channel"]

    def __len__(self) -> int:
        return len(self.image)

    @property
    def rank(self) -> Int[Tensor, "problem slot"]:
        """How many earlier slots have the same tile."""
        same = self.tile.unsqueeze(2) == self.tile.unsqueeze(1)
        return same.tril(-1).sum(dim=2)


def all_subproblems(
    image: int, changes: int, tiles: Tiles, free: Int[Tensor, "image tile"], channels: int
) -> SubProblems:
    """The sub-problems that together hold every choice of units of an image.

    Args:
        image: The index of the image.
        changes: Units that change, at most as many as may change.
        tiles: The tiles.
        free: Units that may change per image and tile.
        channels: Values per unit.
    """
    starts = tiles.starts[free[image, tiles.starts] > 0]
    choices = combinations_with_replacement(starts.tolist(), changes)
    chosen = np.fromiter(chain.from_iterable(choices), dtype=np.int64).reshape(-1, changes)
    tile = torch.from_numpy(chosen).to(free.device)
    one = torch.ones((*tile.shape, channels), dtype=torch.float64, device=free.device)
    problems = SubProblems(torch.full_like(tile[:, 0], image), tile, -one, one)
    return problems[(problems.rank < free[image, tile]).all(dim=1)]


def most_subproblems(changes: int, tiles: Tiles, free: Int[Tensor, "image tile"]) -> list[int]:
    """How many sub-problems ``all_subproblems`` gives at most, per image."""
    starts = (free[:, tiles.starts] > 0).sum(dim=1)
    return [comb(count + changes - 1, changes) for count in starts.tolist()]


def split(
    problems: SubProblems,
    tiles: Tiles,
    free: Int[Tensor, "image tile"],
    spread: Float[Tensor, "problem slot channel"],
) -> SubProblems:
    """Smaller sub-problems that together hold the same changes.

    The largest tile is halved. Where all slots are single units, the range of values with the
    largest spread is halved.

    Args:
        problems: The sub-problems.
        tiles: The tiles.
        free: Units that may change per image and tile.
        spread: How much each value of each slot matters; used for single units.
    """
    largest, slot = tiles.sizes[problems.tile].max(dim=1)
    single = largest == 1
    parts = _halve_tiles(problems[~single], slot[~single], tiles, free)
    parts += _halve_values(problems[single], spread[single])
    return SubProblems.join(parts)


def _halve_tiles(
    problems: SubProblems, slot: Tensor, tiles: Tiles, free: Tensor
) -> list[SubProblems]:
    tile = problems.tile.gather(1, slot.unsqueeze(1))
    same = problems.tile == tile
    times, rank = same.sum(dim=1), same.cumsum(dim=1) - 1
    first, second = tiles.halves[tile.squeeze(1)].unbind(dim=1)
    room_first, room_second = free[problems.image, first], free[problems.image, second]
    parts = []
    for changes in range(1, problems.tile.shape[1] + 1):
        for inside in range(changes + 1):
            fits = (inside <= room_first) & (changes - inside <= room_second)
            rows = ((times == changes) & fits).nonzero().squeeze(1)
            half = torch.where(rank[rows] < inside, first[rows, None], second[rows, None])
            tile = torch.where(same[rows], half, problems.tile[rows])
            parts.append(replace(problems[rows], tile=tile))
    return parts


def _halve_values(problems: SubProblems, spread: Tensor) -> list[SubProblems]:
    at = spread.flatten(1).argmax(dim=1, keepdim=True)
    low, high = problems.low.flatten(1), problems.high.flatten(1)
    middle = (low.gather(1, at) + high.gather(1, at)) / 2
    below = high.scatter(1, at, middle).view_as(problems.high)
    above = low.scatter(1, at, middle).view_as(problems.low)
    return [replace(problems, high=below), replace(problems, low=above)]
