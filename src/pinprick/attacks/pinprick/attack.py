"""Pinprick: the fewest elements or pixels, by gates that open all the way.

Our own attack. The paper it grew from (arXiv:2506.17250) puts a gate ``w`` on each element of a
dense perturbation, counts the open ones with a step function, and bounds what an open gate lets
through by the box. Here the gate is taken to its end: an open one pushes its unit to the corner
of the box, where it has most effect, and the search is over which k gates to open.

**Start** (search.py) opens the k most promising gates of the clean image, fewer while it fools and
more while it does not. The first start follows whichever class is ahead; later ones aim at one
rival each, those first that a linear model would reach with the fewest units, since an
untargeted search ends in the cheapest class only about half of the time.

**Trim** (trim.py) removes units that are not needed, then searches for a solution with one unit
fewer. In large images many are not needed, for which parts/remove_units.py is better.

**Anneal** (anneal.py) goes from the best image through dense images and values inside the box,
which escapes corners where gradients vanish.

    start, trim, anneal, trim;  then rounds of: start, trim, start, trim, anneal, trim

A target, or a large image, takes longer starts first, of which some resume the one before
(plan.py). An image that a start has not fooled takes signed steps through the box instead of a
trim, and is annealed from there.

Every pass is at most one forward and one backward pass. Every stage has a fixed length, and the
budget only cuts the list short: a smaller one is a prefix of a larger one. An image that needs a
single unit, or at most ``stop_at``, leaves between stages. Forward passes beyond the backward ones
go to a search by scores alone at the end (score_search.py).
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from pinprick.attacks.card import Attack, Card
from pinprick.attacks.pinprick.plan import stages
from pinprick.attacks.pinprick.score_search import ScoreSearch
from pinprick.attacks.pinprick.search import Search
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images

EFFORTS = {"fast": 100, "balanced": 500, "thorough": 1000}


@dataclass(frozen=True, kw_only=True)
class Pinprick(Attack):
    """The fewest units that fool, by gates that open all the way.

    Attributes:
        effort: Passes per image, forward and backward alike: "fast" 100, "balanced" 500,
            "thorough" 1000 at the most.
        max_forwards, max_backwards: Most passes per image, instead of those of ``effort``; if
            one is None, it equals the other. Forward passes beyond the backward ones go to a search
            by scores alone.
        unit: What is counted: "elements" (channel values) or "pixels" (all channels of a pixel).
        values: "free", or "8bit" to change values only to ones an 8-bit image can hold, so that
            the saved PNG is the attack.
        stop_at: Stop an image once it needs at most this many units; checked between stages.
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
        revision=6,
    )

    effort: Literal["fast", "balanced", "thorough"] = "balanced"
    max_forwards: int | None = setting(None, least=2, hint="a single try takes 2 passes")
    max_backwards: int | None = setting(None, least=2, hint="a single try takes 2 passes")
    unit: Literal["elements", "pixels"] = "elements"
    values: Literal["free", "8bit"] = "free"
    stop_at: int | None = setting(None, least=1)

    @property
    def passes(self) -> int:
        """Most passes per image that are forward and backward alike."""
        given = [most for most in (self.max_forwards, self.max_backwards) if most is not None]
        return min(given, default=EFFORTS[self.effort])

    @property
    def further_forwards(self) -> int:
        """Most forward passes per image beyond those."""
        if self.max_forwards is None or self.max_backwards is None:
            return 0
        return self.max_forwards - self.passes

    def facts(self) -> Card:
        return replace(
            self.card,
            unit=self.unit,
            eight_bit=self.values == "8bit",
            max_forwards=self.passes + self.further_forwards,
            max_backwards=self.passes,
        )

    def __call__(self, problem: Problem) -> Images:
        units = Units(self.unit)
        search = Search(problem, units, eight_bit=self.values == "8bit")
        left = self.passes
        for number, stage in enumerate(
            stages(search.number, targeted=problem.goal.targets is not None)
        ):
            rows = (search.best.cost > max(1, self.stop_at or 1)).nonzero().squeeze(1)
            if not left or not len(rows) or (problem.may_refuse and problem.refused[rows].all()):
                break
            steps = min(stage.steps, left)
            trims = min(stage.trim, left - steps)
            left -= steps + trims
            search.run(rows, stage, steps, trims, number)
        if self.further_forwards:
            by_scores = ScoreSearch(problem, search.best, units, stop_at=max(1, self.stop_at or 1))
            by_scores.run(self.further_forwards)
        return search.best.images
