"""Trim: shorten an adversarial image, one candidate a pass.

From an image that meets the goal, put back what it can best do without. What a changed unit is
worth to first order is ``use = -sum g * delta``, ``g`` the margin's gradient at the image: the
margin should rise by so much when the unit is put back. So many of the least useful are put back
at once as the slack of the margin should bear; where that fails, half as many; where a single
one fails, it is kept and the next is tried. Each success gives a new gradient, hence a new order.

Once every changed unit has been tried, few can be spared, and the remaining passes try to do with
one unit fewer: gates are drawn from the running mean of the gradients seen, those already open
preferred. One forward and one backward pass a candidate; nothing is kept that was not judged.
``remove_units.py`` is better where there is much to put back; ``redraw`` is the second half alone.
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
_LOYALTY = 0.3  # how much more a gate counts that is open already
_TEMPERATURE = 0.6


def trim(problem: Problem, found: Best, units: Units, passes: int, use: str) -> None:
    """Shorten what was found for each image, in place; every image must have been found.

    Args:
        problem: The images, all of them adversarial in ``found``.
        found: The adversarial images and how many units each changes.
        units: What is counted.
        passes: How many candidates to judge, the image itself first.
        use: What the random numbers are drawn for.
    """
    trimmer = Trimmer(problem, found, units, use)
    for _ in range(passes):
        trimmer.step()
        if problem.all_refused:
            break


def redraw(problem: Problem, found: Best, units: Units, passes: Counts, use: str) -> None:
    """Try to do with one unit fewer, in place, where no single unit can be spared.

    Args:
        problem: The images, all of them adversarial in ``found``.
        found: The adversarial images and how many units each changes.
        units: What is counted.
        passes: How many candidates to judge for each image, the image itself first.
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
    """The state of a trim: what is shortest so far, what was tried, and what to judge next.

    Attributes:
        found: The shortest image so far and its count.
        settled: Where every unit was tried.

    Args:
        problem: The images, all of them adversarial in ``found``.
        found: The adversarial images and how many units each changes; kept up to date.
        units: What is counted.
        use: What the random numbers are drawn for.
        spare: Whether some single unit may be spared; if not, none is tried before gates are drawn.
    """

    def __init__(
        self, problem: Problem, found: Best, units: Units, use: str, *, spare: bool = True
    ) -> None:
        self.found, self._problem, self._units, self._use = found, problem, units, use
        self._most = (
            int(found.cost.max()) if len(found.cost) else 1
        )  # no count can grow, so this bounds them all
        self._passes = 0
        self._candidate = self._shortest = found.images
        self._grad = self._mean = torch.zeros_like(found.images)
        self._margin = torch.zeros_like(found.cost, dtype=found.images.dtype)
        self._limit = (found.cost / 2).floor().clamp_min(1)  # how many to put back at once
        self._tried = units.changed(found.images, problem.images) & (not spare)
        self._taken = torch.zeros_like(self._tried)
        self.settled: Mask = torch.zeros_like(found.cost, dtype=torch.bool)

    def step(self) -> None:
        """Judge one candidate for each image and choose the next."""
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
        """How many to put back next time, and which were tried in vain."""
        number = self._taken.sum(dim=1).to(self._limit.dtype)  # none where the gates were drawn
        in_vain = self._taken & (~better & (number == 1)).unsqueeze(1)
        redrawn = (better & (number == 0)).unsqueeze(1)  # other units than before: try all anew
        self._tried = (self._tried | in_vain) & ~redrawn
        halved = (number / 2).floor().clamp_min(1)
        self._limit = torch.where(better, torch.maximum(self._limit, 2 * number), halved)

    def _propose(self) -> None:
        """The next candidates: some units put back or, where all were tried, gates drawn anew."""
        images = self._problem.images
        self._taken = self._least_useful()
        self.settled = ~self._taken.any(dim=1)
        fewer = torch.where(self._units.spread(self._taken, images), images, self._shortest)
        self._candidate = torch.where(self.settled.view(-1, 1, 1, 1), self._drawn(), fewer)

    def _least_useful(self) -> Tensor:
        """The units to put back next; none where all were tried."""
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
