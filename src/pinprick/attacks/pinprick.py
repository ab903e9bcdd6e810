"""Pinprick: the fewest elements or pixels, by gates that open all the way.

Our own attack. The paper it grew from (arXiv:2506.17250) puts a gate ``w`` on each element of a
dense perturbation, counts the open ones with a step function, and bounds what an open gate lets
through by the box. Here the gate is taken to its end: an open one pushes its unit to the corner
of the box, so that each counts as much as it can, and the search is over which k gates to open.

**Start.** ``v`` is a running mean of the margin's gradient, ``c`` the corner it points at:

    promise_i = |v_i| * |c_i - x_i|,    the k most promising are open,    x' = c where open, else x

k shrinks while the image fools and grows while it does not, by a fraction that falls from 0.3 to
0.02, and never reaches the best count again. Gates that are open count 1.4 times (they stay
unless something is clearly better), and promises carry Gumbel noise that dies down, so the gates
are drawn rather than sorted. The first start follows whichever class is ahead; later ones aim at
one rival each, those first that a linear model would reach with the fewest units, since an
untargeted search ends in the cheapest class only about half of the time.

**Trim** (parts/trim.py) takes away what can be spared, then tries to do with one unit fewer.

**Anneal** (parts/anneal.py) shakes the best image loose, through dense images and values inside
the box, which gets it out of corners where gradients vanish.

    start, trim, anneal, trim;  then rounds of: start, trim, start, trim, anneal, trim

An image that no start has fooled is taken through the box by signed steps instead, and trimmed.

Every pass is one forward and one backward, every stage has a fixed length, and the budget only
cuts the list short: a smaller one is a prefix of a larger one. An image that needs a single unit,
or at most ``stop_at``, leaves between stages.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
from pinprick.parts.aim import cheapest_rivals
from pinprick.parts.anneal import anneal
from pinprick.parts.best import Best
from pinprick.parts.box import on_grid
from pinprick.parts.choice import check_choice
from pinprick.parts.gates import corner, draw_noise, open_largest, promise, scaled
from pinprick.parts.signed import signed_step
from pinprick.parts.trim import trim
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Logits, PerImage

EFFORTS = {"fast": 100, "balanced": 500, "thorough": 1000}
_RIVALS = 9  # classes that later starts may aim at
_LOYALTY = 0.4  # how much more a gate counts that is open already
_FIRST, _LAST = 0.3, 0.02  # fraction by which k changes, at the start and at the end
_WIDE = 4  # a later start opens so many times the gates that are known to do
_STRIDE = 0.2  # the first of the signed steps, where pixel values run from 0 to 1
_DENSE = 4  # an image with more than one unit in so many changed is annealed, not started anew
_SHORTEST = 20  # a start that is not worth making
_LOOK = 5  # passes between two looks at how many gates are open at the most


@dataclass(frozen=True, kw_only=True)
class Pinprick(Attack):
    """The fewest units that fool, by gates that open all the way.

    Attributes:
        effort: Passes for each image, forward and backward alike: "fast" 100, "balanced" 500,
            "thorough" 1000 at the most.
        max_forwards, max_backwards: Most passes for each image, instead of those of ``effort``.
        unit: What is counted: "elements" (channel values) or "pixels" (all channels of a place).
        values: "free", or "8bit" to change values only to ones an 8-bit image can hold, so that
            the saved PNG is the attack.
        stop_at: Stop an image once it needs at most so many units; looked at between stages.
    """

    card: ClassVar[Card] = Card(
        name="pinprick",
        title="Pinprick",
        norm="l0",
        unit="elements",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        random=True,
        paper="",
    )

    effort: Literal["fast", "balanced", "thorough"] = "balanced"
    max_forwards: int | None = None
    max_backwards: int | None = None
    unit: Literal["elements", "pixels"] = "elements"
    values: Literal["free", "8bit"] = "free"
    stop_at: int | None = None

    def __post_init__(self) -> None:
        check_choice("pinprick", "effort", self.effort, tuple(EFFORTS))
        check_choice("pinprick", "unit", self.unit, ("elements", "pixels"))
        check_choice("pinprick", "values", self.values, ("free", "8bit"))
        for name in ("max_forwards", "max_backwards"):
            value = getattr(self, name)
            if value is not None and value < 2:
                raise BadInput(f"pinprick needs {name} >= 2 to try a single image, got {value}")
        if self.stop_at is not None and self.stop_at < 1:
            raise BadInput(f"pinprick needs stop_at >= 1, got {self.stop_at}")

    @property
    def passes(self) -> int:
        """Most passes for each image, forward and backward alike."""
        given = [most for most in (self.max_forwards, self.max_backwards) if most is not None]
        return min(given, default=EFFORTS[self.effort])

    def facts(self) -> Card:
        return replace(
            self.card,
            unit=self.unit,
            eight_bit=self.values == "8bit",
            max_forwards=self.passes,
            max_backwards=self.passes,
        )

    def __call__(self, problem: Problem) -> Images:
        search = _Search(problem, Units(self.unit), eight_bit=self.values == "8bit")
        left = self.passes
        for number, stage in enumerate(_plan(aimed=problem.goal.targets is None)):
            rows = (search.best.cost > max(1, self.stop_at or 1)).nonzero().squeeze(1)
            if not left or not len(rows):
                break
            steps = min(stage.steps, left)
            trims = 0 if stage.kind == "rank" else min(search.trimming, left - steps)
            left -= steps + trims
            use = f"pinprick, stage {number}"
            if stage.kind == "rank":
                search.rank_rivals(rows, steps)
                continue
            lost = search.best.cost[rows].isinf() & (number > 0)
            again = search.loosened[rows] & (stage.kind == "anneal")
            again = (again & ~lost) | search.dense(rows)
            search.wade(rows[lost], stage, steps, trims, use)
            search.anneal(rows[again], stage, steps, trims, use)
            rest = rows[~lost & ~again]
            if stage.kind == "start":
                search.start(rest, stage, steps, trims, use)
            else:
                search.start_twice(rest, stage, steps, trims, use)
        return search.best.images


@dataclass(frozen=True)
class _Stage:
    """A start or an annealing, each followed by a trim, or the ranking of the rivals.

    Attributes:
        kind: Which of them.
        steps: Its length in passes, the trim not counted.
        aim: The rank of the rival that a start aims at; None for whichever class is ahead.
        memory: Weight of the past in the running mean of a start's gradients.
        temperature: How freely the gates of a start are drawn; it falls to zero.
    """

    kind: Literal["start", "anneal", "rank"]
    steps: int
    aim: int | None = None
    memory: float = 0.85
    temperature: float = 0.6


def _plan(*, aimed: bool) -> Iterator[_Stage]:
    """The stages, without end; a targeted goal leaves no choice of class."""
    yield _Stage("start", 40, memory=0.9, temperature=0.3)
    yield _Stage("anneal", 36)
    if aimed:
        yield _Stage("rank", _RIVALS)
    rank = itertools.count()
    for turn in itertools.count():
        first = next(rank) if aimed else None
        second = next(rank) if aimed and turn == 0 else None
        yield _Stage("start", 30, first, memory=0.9, temperature=0.6 if turn else 0.0)
        yield _Stage("start", 30, second, memory=0.8)
        yield _Stage("anneal", 80)


class _Search:
    """The best of each image so far, and the stages that look for better."""

    def __init__(self, problem: Problem, units: Units, *, eight_bit: bool) -> None:
        self.problem, self.units, self.eight_bit = problem, units, eight_bit
        self.best = Best(problem.images)
        self.loosened = torch.ones_like(self.best.cost, dtype=torch.bool)  # annealing paid
        self.rivals: Tensor | None = None  # the classes to aim at, cheapest first
        self.number = units.total(problem.images[:1]).shape[1]
        share = self.number / 1000
        self.trimming = max(8, round(12 * share ** (1 / 3)))  # 17 at 32 px, 64 at 224 px

    def rank_rivals(self, rows: Tensor, passes: int) -> None:
        ranked = cheapest_rivals(self.problem[rows], self.units, passes)
        self.rivals = rows.new_zeros((len(self.problem), ranked.shape[1]))
        self.rivals[rows] = ranked

    def dense(self, rows: Tensor) -> Tensor:
        """Where so many units are changed that signed steps must have led there."""
        cost = self.best.cost[rows]
        return cost.isfinite() & (cost > max(64, self.number // _DENSE))

    def anneal(self, rows: Tensor, stage: _Stage, steps: int, trims: int, use: str) -> None:
        """Shake the best loose; where that brings nothing, the next turn is a start instead."""
        if not len(rows):
            return
        part, found = self.problem[rows], self.best[rows]
        anneal(part, found, self.units, steps, schedule=stage.steps, eight_bit=self.eight_bit)
        self.loosened[rows] = found.cost < self.best.cost[rows]
        self._finish(rows, part, found, trims, use)

    def start(self, rows: Tensor, stage: _Stage, steps: int, trims: int, use: str) -> None:
        """From the clean image: open the most promising gates, fewer while it fools, else more."""
        if not len(rows):
            return
        part, aims = self.problem[rows], None
        if stage.aim is not None and self.rivals is not None:
            aims = self.rivals[rows, stage.aim % self.rivals.shape[1]]
        found = self._gates(part, self.best.cost[rows], stage, aims, steps, use)
        self._finish(rows, part, found, trims, use)

    def start_twice(self, rows: Tensor, stage: _Stage, steps: int, trims: int, use: str) -> None:
        """Two starts in place of an annealing, one trim after the other, in as many passes."""
        half = replace(stage, steps=(stage.steps - self.trimming) // 2)
        if half.steps < _SHORTEST:
            return self.start(rows, stage, steps, trims, use)
        first = min(half.steps, steps)
        between = min(self.trimming, steps - first)
        self.start(rows, half, first, between, f"{use}, first")
        second = min(half.steps, steps - first - between)
        return self.start(rows, half, second, trims, f"{use}, second")

    def wade(self, rows: Tensor, stage: _Stage, steps: int, trims: int, use: str) -> None:
        """Signed steps through the box, for images that no choice of gates has fooled yet."""
        if not len(rows):
            return
        part = self.problem[rows]
        found, adv = Best(part.images), part.images
        for step in range(steps):
            logits, grad = part.logits_and_gradient(adv, part.goal.margin)
            count = self.units.count(adv, part.images)
            found.offer(adv, count, part.goal.met(logits))
            stride = _STRIDE * (1 - step / stage.steps)
            adv = signed_step(part, adv, grad, stride, eps=1.0)
            adv = on_grid(adv, part.images) if self.eight_bit else adv
        self._finish(rows, part, found, trims, use)

    def _finish(self, rows: Tensor, part: Problem, found: Best, trims: int, use: str) -> None:
        """Trim what was found and keep the better."""
        hit = found.cost.isfinite().nonzero().squeeze(1)
        if len(hit) and trims:
            shorter = found[hit]
            trim(part[hit], shorter, self.units, trims, f"{use}, trim")
            found.offer(shorter.images, shorter.cost, shorter.cost.isfinite(), hit)
        self.best.offer(found.images, found.cost, found.cost.isfinite(), rows)

    def _gates(
        self,
        problem: Problem,
        known: PerImage,
        stage: _Stage,
        aims: Labels | None,
        steps: int,
        use: str,
    ) -> Best:
        images, goal, units = problem.images, problem.goal, self.units
        found = Best(images)
        adv, mean = images, torch.zeros_like(images)
        gates = torch.zeros_like(units.total(images), dtype=torch.bool)
        number = gates.shape[1]
        most = max(8, number // 20)  # a bound on every count, known without asking the device
        count = (_WIDE * known).clamp(8, most)

        def lead(logits: Logits) -> PerImage:
            """The label's lead over the class aimed at."""
            assert aims is not None
            pair = logits.gather(1, torch.stack([goal.labels, aims], dim=1))
            return pair[:, 0] - pair[:, 1]

        loss = goal.margin if aims is None else lead
        for step in range(steps):
            logits, grad = problem.logits_and_gradient(adv, loss)
            met = goal.met(logits)
            found.offer(adv, units.count(adv, images), met)
            past = stage.memory if step else 0.0
            mean = past * mean + (1 - past) * scaled(grad)
            if step:
                change = torch.where(found.cost.isfinite(), _fraction(step, stage.steps), _FIRST)
                count = torch.where(met, count * (1 - change), count * (1 + change) + 1).floor()
                count = torch.minimum(count, found.cost - 1).clamp(1, number)
                most = math.ceil(most * (1 + _FIRST)) + 1
            if step % _LOOK == 0:
                most = int(count.max())
            edge = corner(mean, problem)
            scores = promise(mean, edge, images, units) * (1 + _LOYALTY * gates)
            warmth = stage.temperature * (1 - step / stage.steps)
            if warmth:
                scores = scores * draw_noise(problem, number, warmth, step, use)
            gates = open_largest(scores, count, most)
            adv = torch.where(units.spread(gates, images), edge, images)
        return found


def _fraction(step: int, steps: int) -> float:
    """By how much k changes: a half cosine from the first to the last value."""
    return _LAST + (_FIRST - _LAST) * (1 + math.cos(math.pi * step / steps)) / 2
