"""Searches side by side, with one call of the model per pass.

A slot of a search is a function that learns from what the model says of one candidate per image.
Searches of different kinds share every call. Between slots, images leave a search and others join
it.

On a GPU, starting the few hundred small operations of a pass takes longer than the pass itself. So
what the searches do after a pass is recorded in each slot, at the second of the passes that are
alike, and replayed from then on (``recorded_step.py``). That changes no bit of the results.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.goal import Goal
from pinprick.parts.best import Best
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.recorded_step import Capture, RecordedStep
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


Now = int | Tensor  # the number of a pass within its slot; a tensor, (1,), in a recording
Slot = Callable[[Answer, Now], None]


class Search(BatchRows):
    """One kind of search, with a row per image that is in it.

    A slot updates ``found`` and ``adv`` with each answer. It changes nothing but attributes of the
    search, and assigns new tensors to them.

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

    @property
    def not_alike(self) -> int:
        """How many passes of the next slot differ from later ones in what is done."""
        return 0

    @abstractmethod
    def slot(self, problem: Problem, units: Units, passes: int, done: int) -> Slot:
        """Learns from so many passes after ``done`` passes; ``problem`` has these images."""

    def steps(self, passes: int) -> tuple[Tensor, Tensor]:
        """Passes before each pass of a slot, and the share of the search they are, (row, pass)."""
        step = self.taken.unsqueeze(1) + torch.arange(passes, device=self.taken.device)
        return step, step / self.length.unsqueeze(1)


def take_passes(
    problem: Problem,
    units: Units,
    searches: Sequence[Search],
    passes: int,
    done: int,
    capture: Capture | None = None,
) -> None:
    """Take this many passes of all searches together, after ``done`` passes of the attack."""
    part = problem[torch.cat([search.rows for search in searches])]
    loss = _loss(part.goal, torch.cat([search.aims for search in searches]))
    slots = [search.slot(problem[search.rows], units, passes, done) for search in searches]
    sizes = [len(search) for search in searches]

    def learn(adv: Images, logits: Logits, grad: Images, now: Now) -> None:
        margin, met = part.goal.margin(logits).to(adv.dtype), part.goal.met(logits)
        answer = Answer(margin, met, units.count(adv, part.images), grad)
        parts = zip(*(each.split(sizes) for each in answer), strict=True)
        for slot, values in zip(slots, parts, strict=True):
            slot(Answer(*values), now)

    alone = max(search.not_alike for search in searches)
    step = RecordedStep(learn, searches, capture) if capture is not None else None
    for now in range(passes):
        adv = torch.cat([search.adv for search in searches])
        logits, grad = part.logits_and_gradient(adv, loss)
        if step is None or now < alone:
            learn(adv, logits, grad, now)
        else:
            step(adv, logits, grad, now)
        if part.all_refused:
            break
    for search in searches:
        search.taken = search.taken + passes


def at(values: Tensor, now: Now) -> Tensor:
    """The values of one pass, of shape (row, pass)."""
    if isinstance(now, int):
        return values[:, now]
    return values.index_select(1, now).squeeze(1)


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
