"""Trim: remove the units that are not needed, then swap units to need one fewer.

To first order a changed unit matters by ``use = -sum g * delta``, ``g`` a running mean of the
margin's gradient: the margin should rise by that when the unit is removed. As many of the least
useful units are removed at once as the margin should allow. If that fails, half as many are tried.
If a single one fails, it stays changed and the next is tried.

Once every changed unit has been tried, one of them goes all the same, and units are swapped until
the image fools without it: a few changed ones at random for as many others. Every second time, on
average, these are drawn by their promise, as in a start. Else they are any units, at any corner of
the box, which helps where gradients mislead. A swap stays unless it raises the margin.

An image that does not fool yet takes signed steps until it does. One forward and one backward pass
per candidate; only judged images are saved.
"""

import torch
from torch import Tensor

from pinprick.attacks.pinprick.lockstep import Search
from pinprick.attacks.pinprick.start import STRIDE
from pinprick.parts.best import Best
from pinprick.parts.box import keep_allowed, on_grid, signed_step
from pinprick.parts.choose_units import corner, draw_noise, promise, scaled
from pinprick.parts.largest import find_largest, mask_largest
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images, Mask, PerImage

_MEMORY = 0.8  # most weight of the past in the running means
_SWAPPED = 0.1  # share of the units that are swapped at first; at least one
_TEMPERATURE = 0.6
_GUIDED = 0.5  # share of the swaps that follow the gradient


def trim(
    problem: Problem,
    units: Units,
    steps: int,
    *,
    found: Best,
    use: str,
    eight_bit: bool = False,
) -> Search:
    """Search for images with fewer units than those found; returns the better of both.

    Args:
        problem: The images.
        units: What is counted.
        steps: Number of passes.
        found: The best image of each so far; updated.
        use: What the random numbers are drawn for.
        eight_bit: Keep to values that an 8-bit image can hold.
    """
    images = problem.images
    most = int(found.cost.nan_to_num(posinf=float(images[0].numel())).max())
    removal = Removal(problem, units, found, most)
    swaps = Swaps(problem, units, found, most, use)
    candidate = found.images
    for step in range(steps):
        answer = yield candidate
        count = units.count(candidate, images)
        shorter = answer.met & (count < found.cost) | (step == 0)
        found.offer(candidate, count, answer.met)
        removal.learn(candidate, shorter, answer.margin, answer.grad)
        swaps.learn(candidate, count, shorter, answer.margin, answer.grad)
        fewer, settled = removal.propose()
        swapped = swaps.propose(step, 1 - step / steps)
        walk = signed_step(problem, candidate, answer.grad, STRIDE * (1 - step / steps), eps=1.0)
        walk = on_grid(walk, images) if eight_bit else walk
        candidate = torch.where(settled.view(-1, 1, 1, 1), swapped, fewer)
        candidate = torch.where(found.cost.isinf().view(-1, 1, 1, 1), walk, candidate)
    return found


class Removal:
    """Which units to remove next, and which were found to be needed."""

    def __init__(self, problem: Problem, units: Units, found: Best, most: int) -> None:
        self._problem, self._units, self._found, self._most = problem, units, found, most
        self._shortest = found.images
        self._margin = torch.zeros_like(found.cost, dtype=found.images.dtype)
        self._mean = torch.zeros_like(found.images)
        self._gradients = 0
        self._limit = (found.cost / 2).floor().clamp(1, most)  # units to remove at once, at most
        self._tried = torch.zeros_like(units.changed(found.images, problem.images))
        self._taken = torch.zeros_like(self._tried)

    def learn(self, candidate: Images, shorter: Mask, margin: PerImage, grad: Images) -> None:
        """Update the shortest image, how many units to remove next, and which are needed."""
        number = self._taken.sum(dim=1).to(self._limit.dtype)  # none where units were swapped
        needed = self._taken & (~shorter & (number == 1)).unsqueeze(1)
        swapped = (shorter & (number == 0)).unsqueeze(1)  # other units than before: try all again
        self._tried = (self._tried | needed) & ~swapped
        limit = torch.where(shorter, torch.maximum(self._limit, 2 * number), (number / 2).floor())
        self._limit = torch.where(number > 0, limit.clamp_min(1), self._limit)
        self._shortest = torch.where(shorter.view(-1, 1, 1, 1), candidate, self._shortest)
        self._margin = torch.where(shorter, margin, self._margin)
        past = min(self._gradients / (self._gradients + 1), _MEMORY)
        self._mean = past * self._mean + (1 - past) * grad
        self._gradients += 1

    def propose(self) -> tuple[Images, Mask]:
        """The shortest images without their least useful units, and where all were tried."""
        images, cost = self._problem.images, self._found.cost
        use = -self._units.total(self._mean * (self._shortest - images))
        untried = self._units.changed(self._shortest, images) & ~self._tried
        use = use.masked_fill(~untried, torch.inf)
        places, _ = find_largest(-use, cost, self._most, above=-torch.inf)
        least = use.gather(1, places)
        bears = (self._margin.unsqueeze(1) + least.cumsum(dim=1) < 0).sum(dim=1)
        number = torch.minimum(bears.to(self._limit.dtype), self._limit).clamp_min(1)
        number = torch.minimum(number, cost - 1)  # one unit must stay
        rank = torch.arange(least.shape[1], device=use.device)
        chosen = (rank < number.unsqueeze(1)) & least.isfinite()
        self._taken = torch.zeros_like(self._tried).scatter_(1, places, chosen)
        fewer = torch.where(self._units.spread(self._taken, images), images, self._shortest)
        return fewer, ~self._taken.any(dim=1)


class Swaps:
    """The image with one unit fewer than the best whose margin is the lowest so far."""

    def __init__(self, problem: Problem, units: Units, found: Best, most: int, use: str) -> None:
        self._problem, self._units, self._found = problem, units, found
        self._most, self._use = most, use
        self._current = found.images
        self._margin = torch.full_like(found.cost, torch.inf, dtype=found.images.dtype)
        self._mean = torch.zeros_like(found.images)
        self._gradients = 0

    def learn(
        self, candidate: Images, count: PerImage, shorter: Mask, margin: PerImage, grad: Images
    ) -> None:
        """Keep the candidate unless its margin is higher or it has too many units."""
        self._margin = self._margin.masked_fill(shorter, torch.inf)
        keep = shorter | (count == self._found.cost - 1) & (margin <= self._margin)
        self._current = torch.where(keep.view(-1, 1, 1, 1), candidate, self._current)
        self._margin = torch.where(keep & ~shorter, margin, self._margin)
        past = _MEMORY if self._gradients else 0.0
        self._mean = past * self._mean + (1 - past) * scaled(grad)
        self._gradients += 1

    def propose(self, step: int, left: float) -> Images:
        """The current image with some units swapped, so that it has one fewer than the best."""
        problem, images, units = self._problem, self._problem.images, self._units
        changed = units.changed(self._current, images)
        have, wanted = changed.sum(dim=1).to(self._found.cost.dtype), self._found.cost - 1
        out = (_SWAPPED * left * wanted).floor().clamp_min(1) + (have - wanted).clamp_min(0)
        out = torch.minimum(out, have)
        adv = torch.where(
            units.spread(self._draw(changed, out, step, "out"), images), images, self._current
        )
        edge = corner(self._mean, problem)
        guided = problem.rng.uniform(1, step=step, use=f"{self._use}, guided") < _GUIDED
        scores = promise(self._mean, edge, images, units)
        scores = scores * draw_noise(
            problem, scores.shape[1], _TEMPERATURE, step, f"{self._use}, promise"
        )
        free = ~changed
        if problem.allowed is not None:
            free &= units.largest(problem.allowed.to(images.dtype)) > 0
        number = wanted - (have - out)
        by_promise = mask_largest(scores * free, number, self._most)
        at_random = self._draw(free, number, step, "in")
        new = units.spread(torch.where(guided, by_promise, at_random), images)
        values = torch.where(guided.view(-1, 1, 1, 1), edge, self._random_corner(step))
        return torch.where(new, values, adv)

    def _draw(self, among: Tensor, count: PerImage, step: int, what: str) -> Tensor:
        """So many units at random."""
        keys = self._problem.rng.uniform(among.shape[1], step=step, use=f"{self._use}, {what}")
        return mask_largest((1 - keys) * among, count, self._most)

    def _random_corner(self, step: int) -> Images:
        """0 or 1 for each value that may change, never the value itself."""
        images = self._problem.images
        draw = self._problem.rng.uniform(*images.shape[1:], step=step, use=f"{self._use}, corner")
        values = torch.where(
            (images == 0) | (images == 1), 1 - images, (draw < 0.5).to(images.dtype)
        )
        return keep_allowed(values, images, self._problem.allowed)
