"""Pinprick: the fewest elements or pixels, by gates that open all the way.

Our own attack. The paper it grew from (arXiv:2506.17250) puts a gate ``w`` on each element of a
dense perturbation, counts the open ones with a step function, and bounds what an open gate lets
through by the box. Here the gate is taken to its end: an open one pushes its unit to the corner
of the box, where it has most effect, and the search is over which k gates to open.

The searches find different sets, and no one is best on all networks.

**Start** (start.py) opens the k most promising gates of the clean image, fewer while it fools and
more while it does not. Later starts are drawn at random. They aim at one rival class each, those
first that a linear model would reach with the fewest units.

**Anneal** (anneal.py) goes from the best image through dense images and values inside the box,
which escapes corners where gradients vanish. There are two kinds: one takes steps of twice the box,
the other of half of it.

**Trim** (trim.py) removes units that are not needed while the values of the others move, then swaps
units to need one fewer. It ends each start and each anneal.

The first turn of each image is a start that begins with signed steps. Then each search is tried
once: anneals first where more than 1 % of the units must change, starts first elsewhere. From then
on the one goes next whose last turn removed the largest share of the units per pass (turns.py). The
length of a turn grows with the square root of the units that are known to suffice. On an image
larger than 32 x 32 steps that change every value are shorter. So the same rules serve small and
large images, with and without a target.

All images share one call of the model per pass, whatever their turns are, and the images in one
kind of search share its arithmetic (lockstep.py). Every pass is at most one forward and one
backward pass. The length of a turn does not depend on the budget: a smaller one is a prefix of a
larger one. An image that needs a single unit, or at most ``stop_at``, is not queried after the slot
of passes in which that was found. Forward passes beyond the backward ones go to a search by scores
alone at the end (score_search.py).
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from pinprick.attacks.card import Attack, Card
from pinprick.attacks.pinprick.lockstep import take_passes
from pinprick.attacks.pinprick.score_search import ScoreSearch
from pinprick.attacks.pinprick.turns import SLOT, Plan, Turns
from pinprick.cuda_graph import cuda_steps
from pinprick.parts.best import Best
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
        stop_at: Stop an image once it needs at most this many units; checked every 20 passes.
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
        revision=10,
    )
    plan: ClassVar[Plan] = Plan()

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
        units, enough = Units(self.unit), max(1, self.stop_at or 1)
        best, done = Best(problem.images), 0
        turns = Turns(problem, best, units, self.plan, eight_bit=self.values == "8bit")
        with cuda_steps(problem.images.device) as capture:
            while turns.searches and done < self.passes:
                passes = min(SLOT, self.passes - done)
                take_passes(problem, units, turns.searches, passes, done, capture)
                done += passes
                over = turns.end_slot(enough)
                if done == self.plan.first:
                    done += turns.rank_rivals(over, self.passes - done)
                turns.begin(over)
            if capture is not None:
                problem.note_slower(capture.remark)
        if self.further_forwards:
            by_scores = ScoreSearch(problem, best, units, stop_at=enough)
            by_scores.run(self.further_forwards)
        return best.images
