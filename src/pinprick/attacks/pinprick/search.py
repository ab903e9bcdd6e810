"""The best image so far per problem row, and the stages of Pinprick that improve on it."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from pinprick.attacks.pinprick.anneal import anneal
from pinprick.attacks.pinprick.plan import LARGE, Stage
from pinprick.attacks.pinprick.trim import redraw, trim
from pinprick.parts.adam import half_cosine
from pinprick.parts.best import Best
from pinprick.parts.box import on_grid, signed_step
from pinprick.parts.choose_units import corner, draw_largest, favoured_regions, promise, scaled
from pinprick.parts.remove_units import remove_units
from pinprick.parts.rivals import cheapest_rivals
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Logits, PerImage

_STRIDE = 0.2  # the first of the signed steps, where pixel values run from 0 to 1
_DENSE = 4  # with more than 1 unit in 4 changed, an image is annealed, not started again
_DENSE_TARGETED = 20  # the same with a target, where a new start has no other class to try
_SHORTEST = 20  # passes that a start needs at least
_LOYALTY = 0.4  # extra weight of a gate that is open already
_FIRST, _LAST = 0.3, 0.02  # fraction by which k changes, at the start and at the end
_MANY, _LEAST = 1 / 10, 400  # k grows slowly beyond this share and this number of gates
_WIDE = 4  # a later start opens this multiple of the gates known to suffice
_LOOK = 5  # passes between two readings of the largest number of open gates


class Search:
    """What was found for each image, shared by all stages.

    Attributes:
        best: The shortest adversarial image of each so far.
        number: Number of units per image.

    Args:
        problem: The images.
        units: What is counted.
        eight_bit: Whether to keep to values that an 8-bit image can hold.
    """

    def __init__(self, problem: Problem, units: Units, *, eight_bit: bool) -> None:
        self._problem, self._units, self._eight_bit = problem, units, eight_bit
        self.best = Best(problem.images)
        self.number = units.total(problem.images[:1]).shape[1]
        self._loosened = torch.ones_like(self.best.cost, dtype=torch.bool)  # annealing paid
        self._rivals: Tensor | None = None  # the classes to aim at, cheapest first
        self._mean = torch.zeros_like(problem.images)  # gradients that the last start averaged

    def run(self, rows: Tensor, stage: Stage, steps: int, trims: int, number: int) -> None:
        """One stage for the images ``rows``, as much of it as the budget allows.

        Instead of a start that does not resume another, images not fooled yet take signed steps,
        and dense ones are annealed. Instead of an annealing, images that the last one did not help
        start twice. If a start does not fool, a rescue gets the passes of its trim.
        """
        use = f"pinprick, stage {number}"
        if stage.kind == "rank":
            self._rank_rivals(rows, steps)
            return
        if stage.kind == "start":
            fresh = number > 0 and not stage.resume
            lost = self.best.cost[rows].isinf() & fresh
            again = self._dense(rows) & fresh
            self._signed_steps(rows[lost], stage, steps, trims, use)
            self._start(rows[~lost & ~again], stage, steps, trims, use)
        else:
            again = self._loosened[rows] | self._dense(rows) | self.best.cost[rows].isinf()
            self._start_twice(rows[~again], stage, steps, trims, use)
        self._anneal(rows[again], stage, steps, trims, use)

    def _dense(self, rows: Tensor) -> Tensor:
        """Where so many units are changed that a new start is unlikely to do better."""
        cost, most = self.best.cost[rows], max(64, self.number // _DENSE)
        if self._problem.goal.targets is not None:
            most = max(32, self.number // _DENSE_TARGETED)
        return cost.isfinite() & (cost > most)

    def _rank_rivals(self, rows: Tensor, passes: int) -> None:
        ranked = cheapest_rivals(self._problem[rows], self._units, passes)
        self._rivals = rows.new_zeros((len(self._problem), ranked.shape[1]))
        self._rivals[rows] = ranked

    def _start(self, rows: Tensor, stage: Stage, steps: int, trims: int, use: str) -> None:
        """From the clean image, towards the class aimed at."""
        if not len(rows):
            return
        part, aims = self._problem[rows], None
        if stage.aim is not None and self._rivals is not None:
            aims = self._rivals[rows, stage.aim % self._rivals.shape[1]]
        known, mean = self.best.cost[rows], self._mean[rows]
        found, mean = start(
            part, self._units, stage, known=known, aims=aims, mean=mean, steps=steps, use=use
        )
        self._mean[rows] = mean
        self._finish(rows, part, found, trims, use)
        self._rescue(rows[found.cost.isinf()], stage, trims, use)

    def _rescue(self, rows: Tensor, stage: Stage, passes: int, use: str) -> None:
        """Instead of the trim of a start that did not fool: signed steps, or annealing if dense."""
        if not passes:
            return
        rest = replace(stage, steps=stage.trim)
        nothing, dense = self.best.cost[rows].isinf(), self._dense(rows)
        self._signed_steps(rows[nothing], rest, passes, 0, use)
        self._anneal(rows[dense], rest, passes, 0, use)

    def _start_twice(self, rows: Tensor, stage: Stage, steps: int, trims: int, use: str) -> None:
        """Two starts instead of an annealing, each with a trim, in as many passes."""
        half = replace(stage, steps=(stage.steps - stage.trim) // 2)
        if half.steps < _SHORTEST:
            return self._start(rows, stage, steps, trims, use)
        first = min(half.steps, steps)
        between = min(stage.trim, steps - first)
        self._start(rows, half, first, between, f"{use}, first")
        second = min(half.steps, steps - first - between)
        return self._start(rows, half, second, trims, f"{use}, second")

    def _anneal(self, rows: Tensor, stage: Stage, steps: int, trims: int, use: str) -> None:
        """Anneal the best; where that does not help, the next turn is a start instead."""
        if not len(rows):
            return
        part, found = self._problem[rows], self.best[rows]
        anneal(part, found, self._units, steps, schedule=stage.steps, eight_bit=self._eight_bit)
        self._loosened[rows] = found.cost < self.best.cost[rows]
        self._finish(rows, part, found, trims, use)

    def _signed_steps(self, rows: Tensor, stage: Stage, steps: int, trims: int, use: str) -> None:
        """Signed steps through the box, for images that no choice of gates has fooled yet."""
        if not len(rows):
            return
        part = self._problem[rows]
        found, adv = Best(part.images), part.images
        for step in range(steps):
            logits, grad = part.logits_and_gradient(adv, part.goal.margin)
            count = self._units.count(adv, part.images)
            found.offer(adv, count, part.goal.met(logits))
            if part.all_refused:
                break
            stride = _STRIDE * (1 - step / stage.steps)
            adv = signed_step(part, adv, grad, stride, eps=1.0)
            adv = on_grid(adv, part.images) if self._eight_bit else adv
        self._finish(rows, part, found, trims, use)

    def _finish(self, rows: Tensor, part: Problem, found: Best, trims: int, use: str) -> None:
        """Trim what was found and save the better."""
        hit = found.cost.isfinite().nonzero().squeeze(1)
        if len(hit) and trims:
            shorter = found[hit]
            if self.number > LARGE:
                self._remove_units(part[hit], shorter, trims, use)
            else:
                trim(part[hit], shorter, self._units, trims, f"{use}, trim")
            found.offer(shorter.images, shorter.cost, shorter.cost.isfinite(), hit)
        self.best.offer(found.images, found.cost, found.cost.isfinite(), rows)

    def _remove_units(self, part: Problem, found: Best, passes: int, use: str) -> None:
        """Remove units that are not needed; then draw gates with the passes left."""
        before = part.forwards
        unsettled = remove_units(part, found, self._units, passes)
        left = passes - (part.forwards - before)
        redraw(part, found, self._units, left.masked_fill(unsettled > 0, 0), f"{use}, redrawn")


def start(
    problem: Problem,
    units: Units,
    stage: Stage,
    *,
    known: PerImage,
    aims: Labels | None,
    mean: Images,
    steps: int,
    use: str,
) -> tuple[Best, Images]:
    """The sparsest adversarial image per image that a start finds, and the mean at its end.

    A start opens the most promising gates of the clean image. ``v`` is a running mean of the
    margin's gradient, ``c`` the corner of the box it points at:

        promise_i = |v_i| * |c_i - x_i|,    the k most promising are open
        x' = c where open, else x

    k shrinks while the image fools and grows while it does not, by a fraction that falls from 0.3
    to 0.02, and never reaches the best count again. Beyond a tenth of all units (400 of a small
    image) it grows by at most 0.02: with so many units at corners, more passes help more than more
    gates. Open gates count 1.4 times, so they stay unless another is clearly better. Promises carry
    Gumbel noise that falls to zero, so gates are drawn rather than sorted. One forward and one
    backward pass per step.

    Args:
        problem: The images.
        units: What is counted.
        stage: Its length, memory and temperature.
        known: Number of units known to suffice per image; infinite if none is known.
        aims: The class to aim at; None for the best other class.
        mean: The mean gradient that a resuming stage goes on with.
        steps: Number of the stage's passes to take.
        use: What the random numbers are drawn for.
    """
    images, goal = problem.images, problem.goal
    found, adv = Best(images), images
    gates = torch.zeros_like(units.total(images), dtype=torch.bool)
    number = gates.shape[1]
    many = max(_LEAST, _MANY * number)
    most = max(8, number // 20)  # a bound on every count that needs no wait for the device
    count = (_WIDE * known).clamp(8, most)

    def over_aim(logits: Logits) -> PerImage:
        """The margin of the label over the class aimed at."""
        assert aims is not None
        pair = logits.gather(1, torch.stack([goal.labels, aims], dim=1))
        return pair[:, 0] - pair[:, 1]

    loss = goal.margin if aims is None else over_aim
    field = favoured_regions(problem, units, use) if stage.favour else None
    for step in range(steps):
        logits, grad = problem.logits_and_gradient(adv, loss)
        met = goal.met(logits)
        found.offer(adv, units.count(adv, images), met)
        if problem.all_refused:
            break
        past = stage.memory if step or stage.resume else 0.0
        mean = past * mean + (1 - past) * scaled(grad)
        if step:
            change = torch.where(found.cost < torch.inf, _fraction(step, stage.steps), _FIRST)
            growth = torch.where(count < many, change, _LAST)
            count = torch.where(met, count * (1 - change), count * (1 + growth) + 1).floor()
            count = torch.minimum(count, found.cost - 1).clamp(1, number)
            most = math.ceil(most * (1 + _FIRST)) + 1
        if step % _LOOK == 0:
            most = int(count.max())
        edge = corner(mean, problem)
        scores = promise(mean, edge, images, units) * (1 + _LOYALTY * gates)
        left = 1 - step / stage.steps
        if field is not None:
            scores = scores * (stage.favour * left * field).exp()
        warmth = stage.temperature * left
        gates = draw_largest(problem, scores, count, most, temperature=warmth, step=step, use=use)
        adv = torch.where(units.spread(gates, images), edge, images)
    return found, mean


def _fraction(step: int, steps: int) -> float:
    """By how much k changes: a half cosine from the first to the last value."""
    return _LAST + (_FIRST - _LAST) * half_cosine(step, steps)
