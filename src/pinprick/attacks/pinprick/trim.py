"""Trim: remove the units that are not needed, then swap units to need one fewer.

To first order a changed unit matters by ``use = -sum g * delta``, ``g`` a running mean of the
margin's gradient: the margin should rise by that when the unit is removed. As many of the least
useful units are removed at once as the margin should allow. If that fails, half as many are tried.
If a single one fails, it stays changed and the next is tried. While more than one unit in 40 goes
per slot, and not all were tried, the trim goes on beyond its passes.

The values of the other changed units take signed steps along ``-g`` in every candidate. The steps
become smaller along the trim. They cost no pass, and let the others do what the removed units did.

Once every changed unit has been tried, one of them goes all the same, and units are swapped until
the image fools without it: a few changed ones at random for as many others. Every second time, on
average, these are drawn by their promise, as in a start. Else they are any units, at any corner of
the box, which helps where gradients mislead. A swap stays unless it raises the margin.

An image that does not fool yet takes signed steps until it does. One forward and one backward pass
per candidate; only judged images are saved.
"""

import torch
from torch import Tensor

from pinprick.attacks.pinprick.lockstep import Answer, Now, Search, Slot, at
from pinprick.attacks.pinprick.start import STRIDE, reach
from pinprick.parts.best import Best
from pinprick.parts.box import keep_allowed, on_grid, signed_step
from pinprick.parts.choose_units import corner, noise_of, promise
from pinprick.parts.largest import find_largest, mask_largest
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Mask, PerImage

_UNIT = 2.0**-24  # of random bits
_MEMORY = 0.8  # most weight of the past in the running mean
_SWAPPED = 0.1  # share of the units that are swapped at first; at least one
_TEMPERATURE = 0.6
_WORTH = 1 - 1 / 40  # a slot is worth it if less than this share of the units is left
_GUIDED = 0.5  # share of the swaps that follow the gradient


class Trim(Search):
    """Searches for adversarial images with fewer units than those found.

    Args:
        images: The clean images.
        rows, aims, found, length: As in ``Search``; nothing follows a trim.
        eight_bit: Keep to values that an 8-bit image can hold.
        stride: The first step of the values.
    """

    def __init__(
        self,
        images: Images,
        units: Units,
        rows: Tensor,
        aims: Labels,
        found: Best,
        length: Tensor,
        *,
        eight_bit: bool = False,
        stride: float = 0.0,
    ) -> None:
        super().__init__(rows, aims, found, found.images, length, torch.zeros_like(length))
        self._mean = torch.zeros_like(images)
        self._margin = torch.zeros_like(found.cost, dtype=images.dtype)  # of the best found
        self._limit = (found.cost / 2).floor().clamp(1, images[0].numel())  # to remove at once
        self._tried = torch.zeros_like(units.changed(images, images))  # found to be needed
        self._removed = torch.zeros_like(self._tried)  # by the candidate, unless it swaps
        self._swapped = found.images  # one unit fewer than the best, at the lowest margin so far
        self._lowest = torch.full_like(self._margin, torch.inf)  # that margin
        self._before, self._removing = found.cost, torch.ones_like(rows, dtype=torch.bool)
        self._eight_bit, self._stride = eight_bit, stride

    def over(self) -> Mask:
        removes = self._removing & (self.found.cost < _WORTH * self._before)
        return super().over() & ~removes

    def slot(self, problem: Problem, units: Units, passes: int, done: int) -> Slot:
        images, self._before = problem.images, self.found.cost
        step, share = self.steps(passes)
        left = (1 - share).clamp_min(0).to(images.dtype)
        weight = (1 - (step / (step + 1)).clamp_max(_MEMORY)).to(images.dtype)
        most = int(self.found.cost.nan_to_num(posinf=float(images[0].numel())).max())
        lost = bool(self.found.cost.isinf().any())  # what was found stays found

        def moved(adv: Images, grad: Images, size: float, now: Now) -> Images:
            stride = size * at(left, now).view(-1, 1, 1, 1)
            walk = signed_step(problem, adv, grad, stride, eps=1.0)
            return on_grid(walk, images) if self._eight_bit else walk

        def learn(answer: Answer, now: Now) -> None:
            self._mean = torch.lerp(self._mean, answer.grad, at(weight, now).view(-1, 1, 1, 1))
            self._learn(answer, first=at(step, now) == 0)
            candidate = self.adv
            bound = most
            if images.is_cpu:  # a GPU would have to wait to know
                bound = int(self.found.cost.nan_to_num(posinf=1).max())
            self._propose(problem, units, bound, at(left, now), done + now)
            if self._stride:
                changed = units.spread(units.changed(self.adv, images), images)
                steps = moved(self.adv, self._mean, self._stride, now)
                self.adv = torch.where(changed, steps, self.adv)
            if lost:
                walk = moved(candidate, answer.grad, STRIDE * reach(images), now)
                self.adv = torch.where(_wide(self.found.cost.isinf()), walk, self.adv)

        return learn

    def _learn(self, answer: Answer, first: Mask) -> None:
        """Save what is better; which units are needed, and how many to remove next."""
        found, removed = self.found, self._removed.sum(dim=1)
        fewer = answer.met & (answer.changed < found.cost) | first
        found.offer(self.adv, answer.changed, answer.met)
        needed = self._removed & (~fewer & (removed == 1)).unsqueeze(1)
        others = (fewer & (removed == 0)).unsqueeze(1)  # units were swapped: try all again
        self._tried = (self._tried | needed) & ~others
        limit = torch.where(fewer, torch.maximum(self._limit, 2 * removed), removed // 2)
        self._limit = torch.where(removed > 0, limit.clamp_min(1), self._limit)
        self._margin = torch.where(fewer, answer.margin, self._margin)
        lower = (answer.changed == found.cost - 1) & (answer.margin <= self._lowest) & ~fewer
        self._lowest = torch.where(lower, answer.margin, self._lowest.masked_fill(fewer, torch.inf))
        self._swapped = torch.where(_wide(lower | fewer), self.adv, self._swapped)

    def _propose(
        self, problem: Problem, units: Units, most: int, left: PerImage, step: Now
    ) -> None:
        """The next candidates: some units removed, or swapped where all were tried."""
        images, best, cost = problem.images, self.found.images, self.found.cost
        untried = units.changed(best, images) & ~self._tried
        self._removing = untried.any(dim=1)
        settled = ~self._removing & (cost < torch.inf)  # nothing to swap where nothing was found
        swaps = not settled.is_cpu or bool(settled.any())  # a GPU would have to wait to know
        base, among = best, untried
        keys = units.total(self._mean * (best - images))  # minus the use
        if swaps:
            base = torch.where(_wide(settled), self._swapped, best)
            changed = units.changed(base, images)
            bits = problem.rng.integers(2**24, changed.shape[1], step=step, use="pinprick, swap")
            uniform = bits * _UNIT
            among = untried | changed & settled.unsqueeze(1)
            keys = torch.where(settled.unsqueeze(1), uniform, keys)
        keys = keys.masked_fill(~among, -torch.inf)
        places, _ = find_largest(keys, cost, most, above=-torch.inf)
        values = keys.gather(1, places)
        bears = (self._margin.unsqueeze(1) - values.cumsum(dim=1) < 0).sum(dim=1)
        number = torch.minimum(torch.minimum(bears, self._limit).clamp_min(1), cost - 1)
        if swaps:
            have = changed.sum(dim=1)
            out = (_SWAPPED * left * (cost - 1)).floor().clamp_min(1) + have - (cost - 1)
            number = torch.where(settled, torch.minimum(out, have), number)
        rank = torch.arange(values.shape[1], device=keys.device)
        chosen = (rank < number.unsqueeze(1)) & values.isfinite()
        gone = torch.zeros_like(among).scatter_(1, places, chosen)
        self.adv = torch.where(units.spread(gone, images), images, base)
        self._removed = gone & ~settled.unsqueeze(1)
        if swaps:
            into = torch.where(settled, cost - 1 - have + number, 0)
            self._change(problem, units, ~changed, into, most, bits, step)

    def _change(
        self,
        problem: Problem,
        units: Units,
        free: Tensor,
        number: PerImage,
        most: int,
        bits: Tensor,
        step: Now,
    ) -> None:
        """Change so many of the free units: by their promise, or any at any corner of the box."""
        images = problem.images
        if problem.allowed is not None:
            free = free & (units.largest(problem.allowed.to(images.dtype)) > 0)
        guided = problem.rng.uniform(1, step=step, use="pinprick, guided") < _GUIDED
        edge = corner(self._mean, problem)
        uniform = bits * _UNIT
        gains = promise(self._mean, edge, images, units)
        keys = torch.where(
            guided, gains * noise_of(uniform, _TEMPERATURE, gains.dtype), 1 - uniform
        )
        keys = keys.masked_fill(~free, 0)  # an infinite key times zero would be NaN
        new = units.spread(mask_largest(keys, number, most), images)
        values = torch.where(guided.view(-1, 1, 1, 1), edge, _any_corner(problem, units, bits))
        self.adv = torch.where(new, values, self.adv)


def _any_corner(problem: Problem, units: Units, bits: Tensor) -> Images:
    """0 or 1 for each value that may change by the lowest bits, never the value itself."""
    images = problem.images
    channel = torch.arange(images.shape[1], device=images.device).view(-1, 1, 1)
    drawn = (units.spread(bits, images) >> channel & 1).to(images.dtype)
    values = torch.where((images == 0) | (images == 1), 1 - images, drawn)
    return keep_allowed(values, images, problem.allowed)


def _wide(mask: Mask) -> Tensor:
    return mask.view(-1, 1, 1, 1)
