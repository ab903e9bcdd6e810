"""Which search each image takes next, and for how many passes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pinprick.attacks.pinprick.anneal import anneal
from pinprick.attacks.pinprick.lockstep import Search, Turn
from pinprick.attacks.pinprick.start import start
from pinprick.attacks.pinprick.trim import trim
from pinprick.parts.best import Best
from pinprick.parts.rivals import cheapest_rivals
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import PerImage

SLOT = 20  # passes between two looks at the counts; turns begin and end with a slot
_USUAL = 60  # passes of a turn that memory and temperature are stated for
_LENGTHS = (40, 60, 80, 100, 160, 240, 400)  # passes of a turn


@dataclass(frozen=True)
class Kind:
    """A kind of search.

    Attributes:
        search: What it does before its trim; "swap" is a trim alone.
        pace: Passes per square root of the units that are known to suffice.
        memory: Most weight of the past in the running mean of a start's gradients, in a turn of 60
            passes. In a longer one gradients count for longer, in proportion.
        temperature: Noise in the draw of a start's gates, in a turn of 60 passes. In a longer one
            it is less, in proportion.
        favour: How much a start favours some regions of the image.
        aimed: Whether starts aim at one rival class each.
    """

    search: Literal["start", "anneal", "swap"]
    pace: int
    memory: float = 0.0
    temperature: float = 0.0
    favour: float = 0.0
    aimed: bool = False


@dataclass(frozen=True)
class Plan:
    """All that decides the turns.

    Attributes:
        first: Passes of the first turn, a start that sorts its gates.
        dense: How many of these are signed steps.
        first_trim: How many of these are its trim.
        first_memory: Most weight of the past in the mean of its gradients.
        trim: Share of the passes of each later turn that are its trim.
        rivals: Classes that later starts may aim at, which takes as many passes to rank.
        kinds: The kinds of later turns, those to be tried first in front.
    """

    first: int = 100
    dense: int = 10
    first_trim: int = 40
    first_memory: float = 0.95
    trim: float = 0.4
    rivals: int = 9
    kinds: tuple[Kind, ...] = (
        Kind("start", pace=12, memory=0.9, temperature=0.6, aimed=True),
        Kind("anneal", pace=20),
        Kind("start", pace=12, memory=0.8, temperature=0.6, favour=1.0),
        Kind("swap", pace=20),
    )


class Turns:
    """The next turn per image: of the kind that failed least often in a row.

    Of equal ones it is the first. A turn fails unless it finds fewer units.

    Args:
        problem: The images.
        best: The sparsest adversarial image of each so far.
        units: What is counted.
        plan: The kinds of turns.
        eight_bit: Keep to values that an 8-bit image can hold.
    """

    def __init__(
        self, problem: Problem, best: Best, units: Units, plan: Plan, *, eight_bit: bool
    ) -> None:
        self._problem, self._best, self._units = problem, best, units
        self._plan, self._eight_bit = plan, eight_bit
        self._failures = torch.zeros(
            (len(problem), len(plan.kinds)), dtype=torch.long, device=best.cost.device
        )
        self._aimed = torch.zeros_like(problem.goal.labels)  # starts that had an aim
        self._rivals: Tensor | None = None  # the classes to aim at, cheapest first

    def first(self) -> Turn:
        """The first turn of all images."""
        rows = torch.arange(len(self._problem), device=self._best.cost.device)
        known = self._best.cost.clone()
        return Turn(rows, None, self._first_search(known), None, known)

    def rank_rivals(self, rows: Tensor, left: int) -> int:
        """Rank the classes to aim at; returns the passes that it takes, at most ``left``.

        That is one forward pass and one backward pass per class.
        """
        most = min(self._plan.rivals, left)
        if self._problem.goal.targets is not None or not len(rows) or not most:
            return 0
        ranked = cheapest_rivals(self._problem[rows], self._units, most)
        self._rivals = rows.new_zeros((len(self._problem), ranked.shape[1]))
        self._rivals[rows] = ranked
        return ranked.shape[1]

    def learn(self, over: list[Turn]) -> Tensor:
        """Count the failures of turns that are over; returns their images."""
        for turn in over:
            if turn.kind is not None:
                helped = self._best.cost[turn.rows] < turn.known
                failures = self._failures[turn.rows, turn.kind]
                self._failures[turn.rows, turn.kind] = torch.where(helped, 0, failures + 1)
        return torch.cat([turn.rows for turn in over] or [self._aimed[:0]])

    def next(self, rows: Tensor, done: int) -> Iterator[Turn]:
        """The next turns of these images, after ``done`` passes."""
        kinds = self._failures[rows].argmin(dim=1)
        paces = self._best.cost.new_tensor([kind.pace for kind in self._plan.kinds])
        wanted = paces[kinds] * self._best.cost[rows].sqrt()
        lengths = torch.bucketize(wanted, wanted.new_tensor(_LENGTHS[:-1]))
        for pair in (kinds * len(_LENGTHS) + lengths).unique().tolist():
            kind, length = divmod(pair, len(_LENGTHS))
            some = rows[(kinds == kind) & (lengths == length)]
            yield self._turn(some, kind, _LENGTHS[length], f"pinprick, pass {done}, kind {kind}")

    def _turn(self, rows: Tensor, number: int, length: int, use: str) -> Turn:
        kind, found, aims = self._plan.kinds[number], self._best[rows], None
        if kind.aimed and self._rivals is not None:
            aims = self._rivals[rows, self._aimed[rows] % self._rivals.shape[1]]
            self._aimed[rows] += 1
        search = self._search(self._problem[rows], kind, length, found, use)
        return Turn(rows, number, search, aims, found.cost.clone())

    def _first_search(self, known: PerImage) -> Search:
        plan, use = self._plan, "pinprick, first turn"
        found = yield from start(
            self._problem,
            self._units,
            plan.first - plan.first_trim,
            known=known,
            dense=plan.dense,
            memory=plan.first_memory,
            use=use,
            eight_bit=self._eight_bit,
        )
        return (yield from self._trim(self._problem, plan.first_trim, found, use))

    def _search(self, part: Problem, kind: Kind, length: int, found: Best, use: str) -> Search:
        trims = length if kind.search == "swap" else round(self._plan.trim * length)
        steps, units = length - trims, self._units
        if kind.search == "start":
            usual = min(1.0, _USUAL / length)
            found = yield from start(
                part,
                units,
                steps,
                known=found.cost,
                memory=1 - (1 - kind.memory) * usual,
                temperature=kind.temperature * usual,
                favour=kind.favour,
                use=use,
                eight_bit=self._eight_bit,
            )
        elif kind.search == "anneal":
            found = yield from anneal(part, units, steps, found=found, eight_bit=self._eight_bit)
        return (yield from self._trim(part, trims, found, use))

    def _trim(self, part: Problem, steps: int, found: Best, use: str) -> Search:
        search = trim(
            part, self._units, steps, found=found, use=f"{use}, trim", eight_bit=self._eight_bit
        )
        return (yield from search)
