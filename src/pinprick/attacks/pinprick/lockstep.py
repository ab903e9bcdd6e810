"""Searches side by side, with one call of the model per pass.

A slot of a search is a generator: it is sent what the model says of its candidates, one per
image. So it reads like a loop of its own, and searches of different kinds share every call.
Between slots, images leave a search and others join it.
"""

from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import NamedTuple

import torch
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.goal import Goal
from pinprick.parts.best import Best
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Logits, Mask, PerImage


class Answer(NamedTuple):
    """What the model says of one candidate per image.

    Attributes:
        margin: How far each is from the goal; below zero once it is met.
        met: Which meet the goal.
        changed: How many units each changes.
        grad: The gradient of the margin, or of the label's lead over the class aimed at.
    """

    margin: PerImage
    met: Mask
    changed: PerImage
    grad: Images


Slot = Generator[None, Answer, None]


class Search(BatchRows):
    """One kind of search, with a row per image that is in it.

    A slot updates ``found`` and ``adv`` with each answer.

    Attributes:
        rows: The images, as rows of the whole problem.
        aims: The class to aim at; -1 for the best other class, or the target.
        found: The best of this turn.
        adv: The next candidates.
        taken: Passes so far.
        length: Passes of the search.
        trims: Passes of the trim that follows it.
    """

    def __init__(
        self, rows: Tensor, aims: Labels, found: Best, adv: Images, length: Tensor, trims: Tensor
    ) -> None:
        self.rows, self.aims, self.found, self.adv = rows, aims, found, adv
        self.taken, self.length, self.trims = torch.zeros_like(length), length, trims

    def __len__(self) -> int:
        return len(self.rows)

    def over(self) -> Mask:
        """Which images have had all passes of the search."""
        return self.taken >= self.length

    @abstractmethod
    def slot(self, problem: Problem, units: Units, passes: int, done: int) -> Slot:
        """Take so many passes after ``done`` passes of the attack; ``problem`` has these images."""

    def steps(self, passes: int) -> tuple[Tensor, Tensor]:
        """Passes before each pass of a slot, and the share of the search they are, (row, pass)."""
        step = self.taken.unsqueeze(1) + torch.arange(passes, device=self.taken.device)
        return step, step / self.length.unsqueeze(1)


def take_passes(
    problem: Problem, units: Units, searches: Sequence[Search], passes: int, done: int
) -> None:
    """Take this many passes of all searches together, after ``done`` passes of the attack."""
    part = problem[torch.cat([search.rows for search in searches])]
    loss = _loss(part.goal, torch.cat([search.aims for search in searches]))
    slots = [search.slot(problem[search.rows], units, passes, done) for search in searches]
    for slot in slots:
        next(slot)
    for _ in range(passes):
        adv = torch.cat([search.adv for search in searches])
        logits, grad = part.logits_and_gradient(adv, loss)
        margin, met = part.goal.margin(logits).to(adv.dtype), part.goal.met(logits)
        answer = Answer(margin, met, units.count(adv, part.images), grad)
        parts = zip(*(each.split([*map(len, searches)]) for each in answer), strict=True)
        for slot, values in zip(slots, parts, strict=True):
            with suppress(StopIteration):  # of the last pass
                slot.send(Answer(*values))
        if part.all_refused:
            break
    for search in searches:
        search.taken = search.taken + passes


def _loss(goal: Goal, aims: Labels) -> Callable[[Logits], PerImage]:
    """The margin, or the label's lead over the class aimed at."""
    aimed = aims >= 0
    if not aimed.any():
        return goal.margin
    classes = torch.stack((goal.labels, aims.clamp_min(0)), dim=1)

    def loss(logits: Logits) -> PerImage:
        lead = logits.gather(1, classes)
        return torch.where(aimed, lead[:, 0] - lead[:, 1], goal.margin(logits))

    return loss
