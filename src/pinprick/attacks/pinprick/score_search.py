"""How Pinprick uses forward passes beyond its backward passes: a search by scores alone.

Units that are not needed are removed (parts/remove_units.py). Once all are needed, the swaps of
Sparse-RS search for one unit fewer, from the best so far; if nothing has fooled yet, from the clean
image with a quarter of all units. A turn takes at most a third of the passes, or a ninth or less of
them if fewer are left.
"""

import torch
from torch import Tensor

from pinprick.attacks.sparse_rs import SparseRS
from pinprick.parts.best import Best
from pinprick.parts.remove_units import remove_units
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Mask

_PARTS = 3  # searches without success that use up all passes
_SHORTEST = 8  # passes that a turn takes at least
_MANY = 4  # one unit in 4 changes if nothing has fooled yet


class ScoreSearch:
    """A search by scores alone for fewer units than those of ``best``, which is updated.

    Args:
        problem: The images.
        best: The sparsest adversarial image of each so far.
        units: What is counted.
        stop_at: An image that needs at most this many units is done.
    """

    def __init__(self, problem: Problem, best: Best, units: Units, *, stop_at: int) -> None:
        self._problem, self.best = problem.without_gradients(), best
        self._units, self._stop_at = units, stop_at
        self._settled: Mask = torch.zeros_like(best.cost, dtype=torch.bool)

    def run(self, passes: int) -> None:
        """Search with at most ``passes`` forward passes per image."""
        sizes = _sizes(passes)
        end, turn = self._problem.forwards + passes, 0
        while True:
            left = end - self._problem.forwards
            going = (self.best.cost > self._stop_at) & ~self._problem.refused
            if not (going & (left >= sizes[-1])).any():
                return
            above = passes + 1
            for size in sizes:
                rows = (going & (left >= size) & (left < above)).nonzero().squeeze(1)
                self._take_turn(rows, size, turn)
                above = size
            turn += 1

    def _take_turn(self, rows: Tensor, passes: int, turn: int) -> None:
        unsettled = self.best.cost[rows].isfinite() & ~self._settled[rows]
        if unsettled.any():
            self._remove_units(rows[unsettled], passes)
        if not unsettled.all():
            self._swap(rows[~unsettled], passes, turn)

    def _remove_units(self, rows: Tensor, passes: int) -> None:
        found = self.best[rows]
        unsettled = remove_units(self._problem[rows], found, self._units, passes)
        self.best.offer(found.images, found.cost, found.cost.isfinite(), rows)
        self._settled[rows] = unsettled == 0

    def _swap(self, rows: Tensor, passes: int, turn: int) -> None:
        part, cost = self._problem[rows], self.best.cost[rows]
        number = self._units.total(part.images[:1]).shape[1]
        k = (cost - 1).nan_to_num(posinf=max(1, number // _MANY)).long()
        swaps = SparseRS(queries=passes, alpha=0.3, unit=self._units.unit)
        adv, met = swaps.search(part, k, self.best.images[rows], turn)
        self.best.offer(adv, self._units.count(adv, part.images), met, rows)
        self._settled[rows[met]] = False


def _sizes(passes: int) -> list[int]:
    """Numbers of passes that a turn may take, the largest first."""
    sizes = [max(1, passes // _PARTS)]
    while sizes[-1] >= _PARTS * _SHORTEST:
        sizes.append(sizes[-1] // _PARTS)
    return sizes
