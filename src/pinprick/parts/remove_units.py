"""Remove changed units from an adversarial image until each one left is needed.

Removing a unit puts its clean value back. To first order the margin then rises by
``-sum g * delta``, where ``g`` is the gradient of the margin: that is the worth of the unit. One
gradient says little about many units at once, so ``g`` is the running mean over the shortest images
and all groups that were tried. Without gradients the worth is the size of the change.

Half of all units, those of least worth, are removed at once. Where that fails, half as many are
tried next; where it works, twice as many. When it comes down to single units, a few are queried
side by side, without gradients. Of those that are not needed the best is removed, and the others
are tried next, together. A unit that was needed may become removable when others are gone. So once
all were tried, those that were tried before the last removal are tried again, the few with the
lowest margin first, and twice as many each time that none can be removed.

A group costs one forward pass, and with gradients one backward pass. A single unit costs one
forward pass; if it is removed, with gradients one more of both. Every image that is kept was
queried.
"""

import torch
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.parts.best import Best
from pinprick.parts.largest import find_largest
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Counts, Mask

_MEMORY = 0.9  # most weight of the past in the running mean
_ABREAST = 8  # single units of an image that are queried together
_AGAIN = 32  # units that are tried again first


def remove_units(problem: Problem, found: Best, units: Units, passes: int | None) -> Counts:
    """Remove units from the adversarial images in ``found``, in place.

    Args:
        problem: The images, all of them adversarial in ``found``.
        found: The adversarial images and how many units each changes.
        units: What is counted.
        passes: Most forward passes per image; None to go on until all are settled.

    Returns:
        Upper bound on the units of each image that could still be removed.
    """
    unsettled = torch.zeros_like(problem.forwards)
    rows = (found.cost > 1).nonzero().squeeze(1)
    end = None if passes is None else problem.forwards + passes
    work = UnitRemoval(problem[rows], found[rows], units)
    while len(rows):
        work.step(None if end is None else (end - problem.forwards)[rows])
        unsettled[rows] = work.open
        over = (unsettled[rows] == 0) | problem.refused[rows]
        if end is not None:
            over |= (problem.forwards >= end)[rows]
        if over.any():
            found.offer(work.found.images, work.found.cost, torch.ones_like(over), rows)
            rows, work = rows[~over], work[~over]
    return unsettled


class UnitRemoval(BatchRows):
    """The state: the shortest image so far, and which units were tried.

    Only the units that were changed at first have a column here; ``_places`` are their indices.

    Attributes:
        found: The shortest image so far and its count.

    Args:
        problem: The images, all of them adversarial in ``found``.
        found: The adversarial images and how many units each changes; kept up to date.
        units: What is counted.
    """

    def __init__(self, problem: Problem, found: Best, units: Units) -> None:
        self.found, self._problem, self._units = found, problem, units
        self._block = max(_ABREAST, len(problem))  # most candidates in one call
        self._limit = (found.cost / 2).floor().clamp_min(1)  # how many to put back at once
        self._places = _changed_first(units.changed(found.images, problem.images))
        self._tried = torch.zeros_like(self._places, dtype=torch.bool)
        self._needed = torch.zeros_like(self._tried)  # tried in vain since the last one went
        self._again = torch.full_like(found.cost, _AGAIN, dtype=torch.long)  # size of the round
        self._went = torch.zeros_like(found.cost, dtype=torch.bool)  # did any since it began?
        never = torch.finfo(found.images.dtype).max
        self._alone = torch.full_like(self._tried, never, dtype=found.images.dtype)  # margins
        self._due = torch.full_like(self._went, problem.gives_gradients)  # for a gradient
        self._mean = torch.zeros_like(found.images if problem.gives_gradients else found.cost)
        self._gradients = torch.zeros_like(found.cost)  # how many are in the mean

    @property
    def open(self) -> Counts:
        """Number of changed units that may not be needed; 0 once settled.

        A single unit is needed: without it the image is clean.
        """
        left = (self._changed() & ~self._needed).sum(dim=1)
        return left.masked_fill(self.found.cost <= 1, 0)

    def step(self, most: Counts | None = None) -> None:
        """Query some candidates of each image that is not settled, at most ``most``."""
        left = self.open
        due = ((left > 0) & self._due).nonzero().squeeze(1)
        if len(due):
            self._judge_whole(due)
            left = left.index_fill(0, due, 0)
        todo = self._todo()
        number = torch.minimum(self._limit, todo.sum(dim=1))
        number = torch.minimum(number, self.found.cost - 1)  # one unit must stay
        groups = ((left > 0) & (number > 1)).nonzero().squeeze(1)
        singles = ((left > 0) & (number <= 1)).nonzero().squeeze(1)
        if len(groups):
            self._judge_groups(groups, todo[groups], number[groups].long())
        if len(singles):
            several = todo[singles].sum(dim=1).clamp_max(_ABREAST)
            several = several if most is None else torch.minimum(several, most[singles])
            self._judge_singles(singles, todo[singles], several)

    def _changed(self) -> Tensor:
        changed = self._units.changed(self.found.images, self._problem.images)
        return changed.gather(1, self._places)

    def _todo(self) -> Tensor:
        """The units to try; once all were tried, those to try again."""
        changed = self._changed()
        rows = (~(changed & ~self._tried).any(dim=1)).nonzero().squeeze(1)
        if len(rows):
            left = changed[rows] & ~self._needed[rows]
            alone = self._alone[rows].masked_fill(~left, torch.inf)
            rank = alone.argsort(dim=1, stable=True).argsort(dim=1)
            self._again[rows] = torch.where(self._went[rows], _AGAIN, 2 * self._again[rows])
            self._tried[rows] = ~left | (rank >= self._again[rows].unsqueeze(1))
            self._went[rows] = False
        return changed & ~self._tried

    def _judge_whole(self, rows: Tensor) -> None:
        """Query the image as it is, for its gradient."""
        part = self._problem[rows]
        self._learn(rows, part.gradient(self.found.images[rows], part.goal.margin))
        self._due[rows] = False

    def _learn(self, rows: Tensor, grad: Tensor) -> None:
        seen = self._gradients[rows]
        past = (seen / (seen + 1)).clamp_max(_MEMORY).to(grad.dtype).view(-1, 1, 1, 1)
        mean = past * self._mean[rows] + (1 - past) * grad
        self._mean = self._mean.index_copy(0, rows, mean)
        self._gradients = self._gradients.index_copy(0, rows, seen + 1)

    def _least(self, rows: Tensor, todo: Tensor, most: int) -> Tensor:
        """At most ``most`` of the units to try, those of least worth first."""
        delta = self.found.images[rows] - self._problem.images[rows]
        if self._problem.gives_gradients:
            worth = -self._units.total(self._mean[rows] * delta)
        else:
            worth = self._units.total(delta.abs())
        worth = worth.gather(1, self._places[rows]).masked_fill(~todo, torch.inf)
        return worth.argsort(dim=1, stable=True)[:, :most]

    def _judge_groups(self, rows: Tensor, todo: Tensor, number: Counts) -> None:
        places = self._least(rows, todo, int(number.max()))
        rank = torch.arange(places.shape[1], device=places.device)
        chosen = torch.zeros_like(todo).scatter_(1, places, rank < number.unsqueeze(1))
        part = self._problem[rows]
        candidates = self._without(rows, chosen)
        if part.gives_gradients:
            logits, grad = part.logits_and_gradient(candidates, part.goal.margin)
            self._learn(rows, grad)
            met = part.goal.met(logits)
        else:
            met = part.goal.met(part.logits(candidates))
        self._take(rows, candidates, met)
        limit = torch.where(met, torch.maximum(self._limit[rows], 2.0 * number), number // 2)
        self._limit = self._limit.index_copy(0, rows, limit.to(self._limit.dtype))

    def _judge_singles(self, rows: Tensor, todo: Tensor, several: Counts) -> None:
        places = self._least(rows, todo, int(several.max()))
        which = torch.arange(len(rows), device=rows.device).repeat_interleave(several)
        first = several.cumsum(dim=0) - several
        place = torch.arange(len(which), device=rows.device) - first[which]
        unit = places[which, place]
        answers = [
            self._ask_about(rows[some], units)
            for some, units in zip(which.split(self._block), unit.split(self._block), strict=True)
        ]
        margin, met, answered = (torch.cat(parts) for parts in zip(*answers, strict=True))
        in_vain = ~met & answered
        self._tried[rows[which[in_vain]], unit[in_vain]] = True
        self._needed[rows[which[in_vain]], unit[in_vain]] = True
        sure = margin.isfinite()
        self._alone[rows[which[sure]], unit[sure]] = margin[sure]
        margins = torch.full(places.shape, torch.inf, dtype=margin.dtype, device=rows.device)
        margins[which, place] = margin.masked_fill(~met, torch.inf)
        spared, best = margins.isfinite().sum(dim=1), margins.argmin(dim=1, keepdim=True)
        one = torch.zeros_like(todo).scatter_(1, places.gather(1, best), True)
        self._take(rows, self._without(rows, one), spared > 0)
        self._due[rows] = (spared > 0) & self._problem.gives_gradients
        limit = torch.where(spared == several, 2 * spared, spared - 1).clamp_min(1)
        self._limit = self._limit.index_copy(0, rows, limit.to(self._limit.dtype))

    def _ask_about(self, rows: Tensor, unit: Tensor) -> tuple[Tensor, Mask, Mask]:
        """The margins without one unit each, which meet the goal, and which are answers.

        NaN logits are an answer where the image was not refused one.
        """
        part = self._problem[rows]
        one = torch.zeros_like(self._tried[rows]).scatter_(1, unit.unsqueeze(1), True)
        with torch.no_grad():
            logits = part.logits(self._without(rows, one))
        margin = part.goal.margin(logits).to(self._alone.dtype)
        answered = ~(logits.isnan().any(dim=1) & part.refused)
        return margin, part.goal.met(logits), answered

    def _without(self, rows: Tensor, units: Tensor) -> Tensor:
        images = self._problem.images[rows]
        all_units = self._units.total(images[:1]).shape[1]
        back = units.new_zeros((len(units), all_units)).scatter_(1, self._places[rows], units)
        return torch.where(self._units.spread(back, images), images, self.found.images[rows])

    def _take(self, rows: Tensor, candidates: Tensor, met: Mask) -> None:
        """Keep what is shorter and meets the goal; units needed before may not be needed now."""
        cost = self._units.count(candidates, self._problem.images[rows])
        self.found.offer(candidates, cost, met, rows)
        self._needed[rows[met]] = False
        self._went[rows[met]] = True


def _changed_first(changed: Tensor) -> Tensor:
    """Indices of the changed units of each image, filled up with others to the same number."""
    count = changed.sum(dim=1)
    return find_largest(changed.byte(), count, int(count.max()) if len(count) else 0)[0]
