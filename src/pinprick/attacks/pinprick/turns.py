"""Which search each image takes next, and for how many passes."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pinprick.attacks.pinprick.anneal import Anneal
from pinprick.attacks.pinprick.lockstep import Search
from pinprick.attacks.pinprick.start import Start
from pinprick.attacks.pinprick.trim import Trim
from pinprick.parts.best import Best
from pinprick.parts.rivals import cheapest_rivals
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Labels, Mask, PerImage

SLOT = 20  # passes between two looks at the counts; searches begin and end with a slot
_USUAL = 60  # passes of a turn that memory and temperature are stated for
_LENGTHS = (40, 60, 80, 100, 160, 240, 400)  # passes of a turn


@dataclass(frozen=True)
class Kind:
    """A kind of search.

    Attributes:
        search: What it does before its trim.
        pace: Passes per square root of the units that are known to suffice.
        memory: Most weight of the past in the running mean of a start's gradients, in a turn of 60
            passes. In a longer one gradients count for longer, in proportion.
        temperature: Noise in the draw of a start's gates, in a turn of 60 passes. In a longer one
            it is less, in proportion.
        rate: Adam's learning rate at the start of an anneal, on images of up to 32 x 32.
    """

    search: Literal["start", "anneal"]
    pace: int
    memory: float = 0.0
    temperature: float = 0.0
    rate: float = 0.0


@dataclass(frozen=True)
class Plan:
    """All that decides the turns.

    Attributes:
        first: Passes of the first turn, a start that sorts its gates.
        signed: Signed steps that it begins with; a large image may have as many shorter ones.
        first_trim: How many of these are its trim.
        first_memory: Most weight of the past in the mean of its gradients.
        trim: Share of the passes of each later turn that are its trim, in whole slots. A trim that
            still removes many units gets more.
        stride: The first step of the values in a trim, where they run from 0 to 1.
        rivals: Classes that later starts aim at in turn, which takes as many passes to rank.
        many: Share of all units; images that need more try anneals before starts.
        kinds: The kinds of later turns, those to be tried first in front.
    """

    first: int = 100
    signed: int = 7
    first_trim: int = 40
    first_memory: float = 0.9
    trim: float = 0.4
    stride: float = 0.1
    rivals: int = 9
    many: float = 0.01
    kinds: tuple[Kind, ...] = (
        Kind("start", pace=12, memory=0.9, temperature=0.6),
        Kind("anneal", pace=40, rate=2.0),
        Kind("anneal", pace=20, rate=0.5),
    )


class Turns:
    """The searches that go on, and the kind of the next turn per image.

    Kinds that an image has not tried come first. From then on it is the kind whose last turn
    removed the largest share of the units per pass. A turn that removed nothing counts as minus the
    number of such turns in a row.

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
        self._length = torch.zeros_like(every)  # of that turn
        self._worth = best.cost.new_full((len(problem), len(plan.kinds)), torch.inf)  # if untried
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
        self._note_worth(rows)
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

    def begin(self, rows: Tensor) -> None:
        """Begin the next turns of these images."""
        if not len(rows):
            return
        cost, chosen = self._best.cost[rows], self._kinds(rows)
        self._kind[rows], self._known[rows] = chosen, cost.double()
        lengths = torch.tensor(_LENGTHS, device=cost.device)
        wanted = self._of_kind(rows, "pace") * cost.sqrt()
        length = lengths[torch.bucketize(wanted, lengths[:-1])]
        self._length[rows] = length
        for name, search in (("start", self._start), ("anneal", self._anneal)):
            of_name = torch.tensor([kind.search == name for kind in self._plan.kinds])
            some = of_name.to(rows.device)[chosen].nonzero().squeeze(1)
            if len(some):
                self._add(search(rows[some], length[some]))

    def _kinds(self, rows: Tensor) -> Tensor:
        """The kind of the next turn of these images."""
        worth, units = self._worth[rows], self._units.total(self._problem.images[:1]).shape[1]
        anneals = torch.tensor([kind.search == "anneal" for kind in self._plan.kinds])
        many = self._best.cost[rows] > self._plan.many * units
        preferred = anneals.to(rows.device) == many.unsqueeze(1)
        return torch.where(worth.isinf(), 1 + preferred.to(worth.dtype), worth).argmax(dim=1)

    def _of_kind(self, rows: Tensor, name: str) -> PerImage:
        """What the plan says of the kinds of these images' turns."""
        values = [float(getattr(kind, name)) for kind in self._plan.kinds]
        return self._best.cost.new_tensor(values)[self._kind[rows]]

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
            signed=plan.signed,
            eight_bit=self._eight_bit,
        )

    def _start(self, rows: Tensor, length: Tensor) -> Search:
        trims, usual = self._trims(length), (_USUAL / length).clamp_max(1)
        drawn = any(kind.temperature for kind in self._plan.kinds)
        return Start(
            self._problem.images[rows],
            self._units,
            rows,
            self._aims(rows),
            length - trims,
            trims,
            known=self._best.cost[rows],
            memory=1 - (1 - self._of_kind(rows, "memory")) * usual,
            temperature=self._of_kind(rows, "temperature") * usual if drawn else None,
            eight_bit=self._eight_bit,
        )

    def _anneal(self, rows: Tensor, length: Tensor) -> Search:
        trims, aims = self._trims(length), torch.full_like(rows, -1)
        found, rate = self._best[rows], self._of_kind(rows, "rate")
        steps = length - trims
        return Anneal(rows, aims, found, steps, trims, rate=rate, eight_bit=self._eight_bit)

    def _trim(self, search: Search) -> Tensor:
        """Begin the trims after this search; returns the images whose turn is over instead."""
        trimmed = _some(search, search.trims > 0)
        if len(trimmed):
            rows, found, best = trimmed.rows, trimmed.found, self._best[trimmed.rows]
            found.offer(best.images, best.cost, found.cost == torch.inf)
            self._add(self._trim_of(rows, trimmed.aims, found, trimmed.trims))
        return search.rows[search.trims == 0]

    def _trim_of(self, rows: Tensor, aims: Labels, found: Best, length: Tensor) -> Search:
        return Trim(
            self._problem.images[rows],
            self._units,
            rows,
            aims,
            found,
            length,
            eight_bit=self._eight_bit,
            stride=self._plan.stride,
        )

    def _trims(self, length: Tensor) -> Tensor:
        """Passes of the trim in a turn of this length, in whole slots."""
        return (self._plan.trim * length / SLOT).round().long() * SLOT

    def _aims(self, rows: Tensor) -> Labels:
        """The class that each start aims at; -1 for none."""
        if self._rivals is None:
            return torch.full_like(rows, -1)
        aims = self._rivals[rows, self._aimed[rows] % self._rivals.shape[1]]
        self._aimed[rows] += 1
        return aims

    def _note_worth(self, rows: Tensor) -> None:
        """Note what those of the turns of these images that are over were worth."""
        rows = rows[self._kind[rows] >= 0]
        kinds, left = self._kind[rows], self._best.cost[rows] / self._known[rows]
        removed = ((1 - left.nan_to_num(1.0)) / self._length[rows]).to(self._worth)
        failures = self._worth[rows, kinds].clamp_max(0)
        self._worth[rows, kinds] = torch.where(left < 1, removed, failures - 1)

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
