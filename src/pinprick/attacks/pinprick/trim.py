"""Trim: make an adversarial image sparser, one candidate per pass.

The units that matter least are removed. To first order a changed unit matters by
``use = -sum g * delta``, ``g`` the margin's gradient at the image: the margin should rise by that
when the unit is removed. As many of the least useful units are removed at once as the margin should
allow. If that fails, half as many are tried. If a single one fails, it stays changed and the next
is tried. Each success gives a new gradient, hence a new order.

Once every changed unit has been tried, the remaining passes search for one unit fewer: gates are
drawn from the running mean of the gradients seen, and open ones are preferred. One forward and one
backward pass per candidate; only judged images are kept. ``parts/remove_units.py`` is better where
many units are not needed; ``redraw`` is the second half alone.
"""

import torch
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.parts.best import Best
from pinprick.parts.choose_units import corner, draw_largest, promise, scaled
from pinprick.parts.largest import find_largest
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Counts, Mask

_MEMORY = 0.7  # weight of the past in the running mean
_LOYALTY = 0.3  # extra weight of a gate that is open already
_TEMPERATURE = 0.6


def trim(problem: Problem, found: Best, units: Units, passes: int, use: str) -> None:
    """Make what was found for each image sparser, in place.

    Args:
        problem: The images, all of them adversarial in ``found``.
        found: The adversarial images and the number of units each changes.
        units: What is counted.
        passes: Number of candidates to judge, the image itself first.
        use: What the random numbers are drawn for.
    """
    trimmer = Trimmer(problem, found, units, use)
    for _ in range(passes):
        trimmer.step()
        if problem.all_refused:
            break


def redraw(problem: Problem, found: Best, units: Units, passes: Counts, use: str) -> None:
    """Search for one unit fewer, in place, where every single unit is needed.

    Args:
        problem: The images, all of them adversarial in ``found``.
        found: The adversarial images and the number of units each changes.
        units: What is counted.
        passes: Number of candidates to judge per image, the image itself first.
        use: What the random numbers are drawn for.
    """
    rows = ((passes > 1) & (found.cost > 1)).nonzero().squeeze(1)
    trimmer, done = Trimmer(problem[rows], found[rows], units, use, spare=False), 0
    while len(rows):
        trimmer.step()
        done += 1
        over = (passes[rows] <= done) | problem.refused[rows]
        if over.any():
            best = trimmer.found
            found.offer(best.images, best.cost, torch.ones_like(over), rows)
            rows, trimmer = rows[~over], trimmer[~over]


class Trimmer(BatchRows):
    """The state of a trim: the sparsest so far, what was tried, and the next candidates.

    Attributes:
        found: The sparsest image so far and its count.
        settled: Where every unit was tried.

    Args:
        problem: The images, all of them adversarial in ``found``.
        found: The adversarial images and the number of units each changes; updated.
        units: What is counted.
        use: What the random numbers are drawn for.
        spare: Whether single units may be unneeded; if not, gates are drawn at once.
    """

    def __init__(
        self, problem: Problem, found: Best, units: Units, use: str, *, spare: bool = True
    ) -> None:
        self.found, self._problem, self._units, self._use = found, problem, units, use
        self._most = int(found.cost.max()) if len(found.cost) else 1  # counts never grow
        self._passes = 0
        self._candidate = self._shortest = found.images
        self._grad = self._mean = torch.zeros_like(found.images)
        self._margin = torch.zeros_like(found.cost, dtype=found.images.dtype)
        self._limit = (found.cost / 2).floor().clamp_min(1)  # units to remove at once, at most
        self._tried = units.changed(found.images, problem.images) & (not spare)
        self._taken = torch.zeros_like(self._tried)
        self.settled: Mask = torch.zeros_like(found.cost, dtype=torch.bool)

    def step(self) -> None:
        """Judge one candidate per image and choose the next."""
        goal, images = self._problem.goal, self._problem.images
        logits, grad = self._problem.logits_and_gradient(self._candidate, goal.margin)
        met, count = goal.met(logits), self._units.count(self._candidate, images)
        better = met & (count < self.found.cost)
        if self._passes == 0:
            better = torch.ones_like(better)  # the image itself
        else:
            self._learn(better)
        wide = better.view(-1, 1, 1, 1)
        self._shortest = torch.where(wide, self._candidate, self._shortest)
        self._grad = torch.where(wide, grad, self._grad)
        self._margin = torch.where(better, goal.margin(logits).to(images.dtype), self._margin)
        past = _MEMORY if self._passes else 0.0
        self._mean = past * self._mean + (1 - past) * scaled(grad)
        self.found.offer(self._candidate, count, met)
        self._propose()
        self._passes += 1

    def _learn(self, better: Mask) -> None:
        """Update how many units to remove next, and which are needed."""
        number = self._taken.sum(dim=1).to(self._limit.dtype)  # none where the gates were drawn
        needed = self._taken & (~better & (number == 1)).unsqueeze(1)
        redrawn = (better & (number == 0)).unsqueeze(1)  # other units than before: try all again
        self._tried = (self._tried | needed) & ~redrawn
        halved = (number / 2).floor().clamp_min(1)
        self._limit = torch.where(better, torch.maximum(self._limit, 2 * number), halved)

    def _propose(self) -> None:
        """The next candidates: some units removed or, if all were tried, gates drawn."""
        images = self._problem.images
        self._taken = self._least_useful()
        self.settled = ~self._taken.any(dim=1)
        fewer = torch.where(self._units.spread(self._taken, images), images, self._shortest)
        self._candidate = torch.where(self.settled.view(-1, 1, 1, 1), self._drawn(), fewer)

    def _least_useful(self) -> Tensor:
        """The units to remove next; none if all were tried."""
        images = self._problem.images
        use = -self._units.total(self._grad * (self._shortest - images))
        untried = self._units.changed(self._shortest, images) & ~self._tried
        use = use.masked_fill(~untried, torch.inf)
        places, _ = find_largest(-use, self.found.cost, self._most, above=-torch.inf)
        least = use.gather(1, places)
        bears = (self._margin.unsqueeze(1) + least.cumsum(dim=1) < 0).sum(dim=1)
        number = torch.minimum(bears.to(self._limit.dtype), self._limit).clamp_min(1)
        number = torch.minimum(number, self.found.cost - 1)  # one unit must stay
        rank = torch.arange(least.shape[1], device=use.device)
        chosen = (rank < number.unsqueeze(1)) & least.isfinite()
        return torch.zeros_like(self._tried).scatter_(1, places, chosen)

    def _drawn(self) -> Tensor:
        """An image with one unit fewer, its gates drawn from the running mean of the gradients."""
        images = self._problem.images
        edge = corner(self._mean, self._problem)
        scores = promise(self._mean, edge, images, self._units)
        scores = scores * (1 + _LOYALTY * self._units.changed(self._shortest, images))
        gates = draw_largest(
            self._problem,
            scores,
            self.found.cost - 1,
            self._most,
            temperature=_TEMPERATURE,
            step=self._passes,
            use=self._use,
        )
        return torch.where(self._units.spread(gates, images), edge, images)
