"""Which search each image takes next, and for how many passes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pinprick.attacks.pinprick.anneal import Anneal
from pinprick.attacks.pinprick.lockstep import Search
from pinprick.attacks.pinprick.start import Start
from pinprick.attacks.pinprick.trim import Trim
from pinprick.parts.best import Best
from pinprick.parts.choose_units import favoured_regions
from pinprick.parts.rivals import cheapest_rivals
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Labels, Mask

SLOT = 20  # passes between two looks at the counts; searches begin and end with a slot
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
        trim: Share of the passes of each later turn that are its trim, in whole slots. A trim that
            still removes many units gets more.
        rivals: Classes that later starts may aim at, which takes as many passes to rank.
        kinds: The kinds of later turns, those to be tried first in front.
    """

    first: int = 100
    dense: int = 8
    first_trim: int = 40
    first_memory: float = 0.9
    trim: float = 0.4
    rivals: int = 9
    kinds: tuple[Kind, ...] = (
        Kind("start", pace=12, memory=0.9, temperature=0.6, aimed=True),
        Kind("anneal", pace=20),
        Kind("start", pace=12, memory=0.8, temperature=0.6, favour=1.0),
        Kind("swap", pace=20),
    )


class Turns:
    """The searches that go on, and the next turn per image: of the kind that failed least in a row.

    Of equal ones it is the first. A turn fails unless it finds fewer units.

    Attributes:
        searches: One of each kind at the most; together they have each image at most once.

    Args:
        problem: The images.
        best: The sparsest adversarial image of each so far; updated after each slot.
        units: What is counted.
        plan: The kinds of turns.
        eight_bit: Keep to values that an 8-bit image can hold.
    """

    def __init__(
        self, problem: Problem, best: Best, units: Units, plan: Plan, *, eight_bit: bool
    ) -> None:
        self._problem, self._best, self._units = problem, best, units
        self._plan, self._eight_bit = plan, eight_bit
        every = torch.arange(len(problem), device=best.cost.device)
        self._kind = torch.full_like(every, -1)  # of the turn that goes on; -1 for the first
        self._known = best.cost.to(torch.float64, copy=True)  # units that sufficed before it
        self._failures = every.new_zeros((len(problem), len(plan.kinds)))  # in a row
        self._aimed = torch.zeros_like(every)  # starts that had an aim
        self._rivals: Tensor | None = None  # the classes to aim at, cheapest first
        self.searches: list[Search] = [self._first(every)]

    def end_slot(self, enough: int) -> Tensor:
        """Save what was found; returns the images whose turn is over.

        Images that need at most ``enough`` units by now, or that were refused, leave for good.
        """
        before, over = self.searches, []
        self.searches = []
        for search in before:
            rows, found = search.rows, search.found
            self._best.offer(found.images, found.cost, found.cost < torch.inf, rows)
            going = (self._best.cost[rows] > enough) & ~self._problem.refused[rows]
            ended = search.over()
            self._add(_some(search, going & ~ended))
            over.append(self._trim(_some(search, going & ended)))
        rows = torch.cat(over)
        self._count_failures(rows)
        return rows

    def rank_rivals(self, over: Tensor, left: int) -> int:
        """Rank the classes to aim at; returns the passes that it takes, at most ``left``.

        That is one forward pass and one backward pass per class, for images whose turn is over and
        for those in a search.
        """
        most = min(self._plan.rivals, left)
        rows = torch.cat([over, *(search.rows for search in self.searches)])
        if self._problem.goal.targets is not None or not len(rows) or not most:
            return 0
        ranked = cheapest_rivals(self._problem[rows], self._units, most)
        self._rivals = rows.new_zeros((len(self._problem), ranked.shape[1]))
        self._rivals[rows] = ranked
        return ranked.shape[1]

    def begin(self, rows: Tensor, done: int) -> None:
        """Begin the next turns of these images, after ``done`` passes."""
        if not len(rows):
            return
        cost, kinds = self._best.cost[rows], self._plan.kinds
        chosen = self._failures[rows].argmin(dim=1)
        self._kind[rows], self._known[rows] = chosen, cost.double()
        pace = cost.new_tensor([kind.pace for kind in kinds])[chosen]
        lengths = torch.tensor(_LENGTHS, device=cost.device)
        length = lengths[torch.bucketize(pace * cost.sqrt(), lengths[:-1])]
        for name, search in (
            ("start", self._start),
            ("anneal", self._anneal),
            ("swap", self._swap),
        ):
            numbers = [number for number, kind in enumerate(kinds) if kind.search == name]
            some = torch.isin(chosen, chosen.new_tensor(numbers)).nonzero().squeeze(1)
            if len(some):
                self._add(search(rows[some], length[some], done))

    def _first(self, rows: Tensor) -> Search:
        plan, images = self._plan, self._problem.images
        return Start(
            images,
            self._units,
            rows,
            torch.full_like(rows, -1),
            torch.full_like(rows, plan.first - plan.first_trim),
            torch.full_like(rows, plan.first_trim),
            known=self._best.cost,
            memory=torch.full_like(self._best.cost, plan.first_memory),
            dense=plan.dense,
            eight_bit=self._eight_bit,
        )

    def _start(self, rows: Tensor, length: Tensor, done: int) -> Search:
        part, cost, kinds = self._problem[rows], self._best.cost[rows], self._plan.kinds
        trims, usual = self._trims(length), (_USUAL / length).clamp_max(1)

        def per_image(values: Iterable[float]) -> Tensor:
            return torch.tensor(tuple(values), device=rows.device)[self._kind[rows]]

        favour = None
        if any(kind.favour for kind in kinds):
            favour = favoured_regions(part, self._units, "pinprick", step=done)
            favour = favour * per_image(kind.favour for kind in kinds).unsqueeze(1)
        temperature = per_image(kind.temperature for kind in kinds) * usual
        return Start(
            part.images,
            self._units,
            rows,
            self._aims(rows, per_image(kind.aimed for kind in kinds)),
            length - trims,
            trims,
            known=cost,
            memory=1 - (1 - per_image(kind.memory for kind in kinds)) * usual,
            temperature=temperature if any(kind.temperature for kind in kinds) else None,
            favour=favour,
            eight_bit=self._eight_bit,
        )

    def _anneal(self, rows: Tensor, length: Tensor, done: int) -> Search:
        trims, aims = self._trims(length), torch.full_like(rows, -1)
        return Anneal(
            rows, aims, self._best[rows], length - trims, trims, eight_bit=self._eight_bit
        )

    def _swap(self, rows: Tensor, length: Tensor, done: int) -> Search:
        return self._trim_of(rows, torch.full_like(rows, -1), self._best[rows], length)

    def _trim(self, search: Search) -> Tensor:
        """Begin the trims after this search; returns the images whose turn is over instead."""
        trimmed = _some(search, search.trims > 0)
        if len(trimmed):
            rows, found, best = trimmed.rows, trimmed.found, self._best[trimmed.rows]
            found.offer(best.images, best.cost, found.cost == torch.inf)
            self._add(self._trim_of(rows, trimmed.aims, found, trimmed.trims))
        return search.rows[search.trims == 0]

    def _trim_of(self, rows: Tensor, aims: Labels, found: Best, length: Tensor) -> Search:
        images = self._problem.images[rows]
        return Trim(images, self._units, rows, aims, found, length, eight_bit=self._eight_bit)

    def _trims(self, length: Tensor) -> Tensor:
        """Passes of the trim in a turn of this length, in whole slots."""
        return (self._plan.trim * length / SLOT).round().long() * SLOT

    def _aims(self, rows: Tensor, aimed: Mask) -> Labels:
        """The class that each start aims at; -1 for none."""
        if self._rivals is None:
            return torch.full_like(rows, -1)
        aims = self._rivals[rows, self._aimed[rows] % self._rivals.shape[1]]
        self._aimed[rows] += aimed.long()
        return torch.where(aimed, aims, -1)

    def _count_failures(self, rows: Tensor) -> None:
        """Count those of the turns of these images that are over."""
        rows = rows[self._kind[rows] >= 0]
        kinds, helped = self._kind[rows], self._best.cost[rows] < self._known[rows]
        failures = self._failures[rows, kinds]
        self._failures[rows, kinds] = torch.where(helped, 0, failures + 1)

    def _add(self, search: Search) -> None:
        """Let these images join the others that are in such a search."""
        if not len(search):
            return
        for number, other in enumerate(self.searches):
            if type(other) is type(search):
                self.searches[number] = type(other).join([other, search])
                return
        self.searches.append(search)


def _some(search: Search, rows: Mask) -> Search:
    """The search for some of its images."""
    chosen = rows.nonzero().squeeze(1)
    return search if len(chosen) == len(search) else search[chosen]
