"""Pointwise: restore the elements of a noisy image one by one, while it fools, by classes only.

Schott, Rauber, Bethge, Brendel: Towards the first adversarially robust neural network model on
MNIST. ICLR 2019.

``s`` is an image that fools. Its changed elements are visited in a random order:

    s_i = x_i  if that still fools, else s_i stays

Rounds follow one another until one of them restores nothing. One forward pass per visit, of which
only the class is used. An element that could not be restored is visited again only after another
one was: before that, the answer would be the same.

``s`` is the problem's start if that fools (for example an image of the target class). Otherwise
``tries`` noisy images are queried. The share of noisy pixels grows from try to try until one fools.
From then on it runs from half the share of the best so far to 1.2 times that, in smaller steps. The
noisy image with the fewest changes that fools is the start.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.batch_rows import BatchRows
from pinprick.parts.best import Best
from pinprick.parts.box import keep_allowed
from pinprick.parts.largest import find_largest
from pinprick.parts.starts import given_starts, salt_and_pepper
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images, Labels, Mask

_ABOVE_ZERO = 2**-25  # half a step of the random numbers, so that no key is zero


@dataclass(frozen=True, kw_only=True)
class Pointwise(Attack):
    """Changed units of a noisy image are restored one by one, while the image fools.

    Attributes:
        tries: Noisy images that are queried to find a start.
        queries: Most queries per image in all; None to go on until no unit can be restored.
        unit: What is restored and counted: "elements" (channel values), as published, or
            "pixels" (all channels of a pixel together).
    """

    card: ClassVar[Card] = Card(
        name="pointwise",
        title="Pointwise",
        norm="l0",
        unit="elements",
        kind="minimal",
        access="labels",
        targeted=True,
        masked=True,
        random=True,
        starts=True,
        paper="arXiv:1805.09190",
        differences=(
            "The order of the elements is drawn once per image, and no query is repeated. Foolbox "
            "draws a new order per round and repeats all queries of the last round.",
            "The start is the noisy image that fools with the fewest changes. Foolbox uses the "
            "smallest l2 norm.",
            "A noisy pixel has a random pure colour. In Foolbox it is black or white.",
            "The second phase of Foolbox is left out. It moves the remaining values towards the "
            "clean ones, which lowers l2 and not the count.",
            "Pixels, targets without a start, and the mask of allowed pixels are ours.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"quick": {"tries": 300, "queries": 1000}}

    tries: int = setting(1000, least=1)
    queries: int | None = setting(None, least=1)
    unit: Literal["elements", "pixels"] = "elements"

    def facts(self) -> Card:
        return replace(self.card, unit=self.unit, max_forwards=self.queries, max_backwards=0)

    def __call__(self, problem: Problem) -> Images:
        units, most = Units(self.unit), self.queries or 2**62
        given = given_starts(problem)
        begin, asked = Best(problem.images), given.asked
        begin.offer(given.images, units.count(given.images, problem.images), given.met)
        rows = (~given.met & ~problem.refused).nonzero().flatten()
        self._try_noise(problem, begin, rows, asked, most)

        adv, rows = begin.images, (begin.cost > 1).nonzero().flatten()
        part, asked = problem[rows], asked[rows]
        visits = Visits(part, adv[rows], units)
        while len(rows):
            done = visits.finished | part.refused | (asked >= most)
            if done.any():
                adv[rows[done]] = visits.images[done]
                rows, part, visits, asked = rows[~done], part[~done], visits[~done], asked[~done]
            if len(rows):
                visits.visit(part)
                asked = asked + 1
        return adv

    def _try_noise(
        self, problem: Problem, begin: Best, rows: Labels, asked: Tensor, most: int
    ) -> None:
        """Offer noisy images of some rows to ``begin``; ``asked`` grows."""
        units, part = Units(self.unit), problem[rows]
        share = torch.full((len(rows),), 1 / self.tries, device=rows.device)
        low, high, pace = torch.zeros_like(share), torch.ones_like(share), share.clone()
        for number in range(min(self.tries, most)):
            stay = ~part.refused & (asked[rows] < most)
            if not stay.all():
                rows, part, share = rows[stay], part[stay], share[stay]
                low, high, pace = low[stay], high[stay], pace[stay]
            if not len(rows):
                return
            noisy = salt_and_pepper(part, share, step=number, use="pointwise, noise")
            noisy = keep_allowed(noisy, part.images, part.allowed)
            count = units.count(noisy, part.images)
            met = part.goal.met(part.logits(noisy)) & (count < begin.cost[rows])
            begin.offer(noisy, count, met, rows)
            asked[rows] += 1
            low = torch.where(met, share / 2, low)
            high = torch.where(met, (1.2 * share).clamp_max(1), high)
            pace = torch.where(met, (high - low) / (self.tries - number), pace)
            share = torch.where(met | (share >= high), low, share)
            share = torch.minimum(share + pace, high)


class Visits(BatchRows):
    """The changed units of each image in a random order, and which of them were visited in vain.

    Attributes:
        images: The images so far; all of them fool.

    Args:
        problem: The images that are to be approached.
        start: Images that fool.
        units: What is restored.
    """

    def __init__(self, problem: Problem, start: Images, units: Units) -> None:
        self.images, self._units = start, units
        changed = units.changed(start, problem.images)
        count = changed.sum(dim=1)
        most = int(count.max()) if len(count) else 1
        keys = problem.rng.uniform(changed.shape[1], step=0, use="pointwise, order") + _ABOVE_ZERO
        self._places, self._left = find_largest(keys * changed, count, most)
        self._vain = torch.zeros_like(self._left)
        self._next = torch.zeros_like(count)  # where in the order the round has come to

    @property
    def finished(self) -> Mask:
        """Where each unit that is left was visited in vain since the last one was restored."""
        return (self._vain | ~self._left).all(dim=1) | (self._left.sum(dim=1) <= 1)

    def visit(self, problem: Problem) -> None:
        """Try to restore the next unit of each image; one query per image."""
        number = torch.arange(self._places.shape[1], device=self._places.device)
        wait = (number - self._next.unsqueeze(1)) % len(number)
        wait = wait.masked_fill(self._vain | ~self._left, len(number))
        turn = wait.argmin(dim=1, keepdim=True)
        unit = torch.zeros_like(self._units.total(self.images), dtype=torch.bool)
        unit.scatter_(1, self._places.gather(1, turn), True)
        tries = torch.where(self._units.spread(unit, self.images), problem.images, self.images)
        met = problem.goal.met(problem.logits(tries))
        self.images = torch.where(met.view(-1, 1, 1, 1), tries, self.images)
        visited, met = number == turn, met.unsqueeze(1)
        self._left = self._left & ~(visited & met)
        self._vain = (self._vain | visited) & ~met
        self._next = turn.squeeze(1) + 1
