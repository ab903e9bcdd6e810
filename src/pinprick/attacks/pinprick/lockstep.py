"""Several searches side by side, with one call of the model per pass.

A search is a generator: it yields one candidate per image and is sent what the model says of them.
So it reads like a loop of its own, and searches of different kinds share every call.
"""

from collections.abc import Generator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from pinprick.parts.best import Best
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Logits, Mask, PerImage


class Answer(NamedTuple):
    """What the model says of one candidate per image.

    Attributes:
        margin: How far each is from the goal; below zero once it is met.
        met: Which meet the goal.
        grad: The gradient of the margin, or of the label's lead over the class aimed at.
    """

    margin: PerImage
    met: Mask
    grad: Images


Search = Generator[Images, Answer, Best]


class Turn:
    """A search for some of the images, from its first pass to its last.

    Attributes:
        candidates: The next ones; None once the search is over.

    Args:
        rows: The images.
        kind: Index of the kind of search; None for the first turn.
        search: Yields candidates.
        aims: The class to aim at per image; None for the best other class, or the target.
        known: Units per image that were known to suffice before.
    """

    def __init__(
        self,
        rows: Tensor,
        kind: int | None,
        search: Search,
        aims: Labels | None,
        known: PerImage,
    ) -> None:
        self.rows, self.kind, self.aims, self.known = rows, kind, aims, known
        self._search = search
        self.candidates: Images | None = next(search)

    def tell(self, answer: Answer) -> None:
        """Send the answer about the candidates, and take the next ones."""
        try:
            self.candidates = self._search.send(answer)
        except StopIteration:
            self.candidates = None


def take_passes(
    problem: Problem, best: Best, units: Units, turns: Sequence[Turn], passes: int, enough: int
) -> None:
    """Take this many passes of all turns together, and save what fools in ``best``.

    Images that need at most ``enough`` units by now, or that were refused, are not queried.
    """
    rows = torch.cat([turn.rows for turn in turns])
    asked = ((best.cost[rows] > enough) & ~problem.refused[rows]).nonzero().squeeze(1)
    part = problem[rows[asked]]
    aims = torch.cat([_aims(turn) for turn in turns])[asked]
    sizes = [len(turn.rows) for turn in turns]
    for _ in range(passes if len(asked) else 0):
        adv = torch.cat([turn.candidates for turn in turns if turn.candidates is not None])
        answer = _ask(part, best, units, adv[asked], rows[asked], aims)
        parts = zip(*(each.split(sizes) for each in _spread(answer, asked, adv)), strict=True)
        for turn, values in zip(turns, parts, strict=True):
            turn.tell(Answer(*values))
        if part.all_refused:
            return


def _aims(turn: Turn) -> Labels:
    return torch.full_like(turn.rows, -1) if turn.aims is None else turn.aims


def _ask(
    part: Problem, best: Best, units: Units, adv: Images, rows: Tensor, aims: Labels
) -> Answer:
    goal, aimed = part.goal, aims >= 0

    def loss(logits: Logits) -> PerImage:
        lead = logits.gather(1, torch.stack((goal.labels, aims.clamp_min(0)), dim=1))
        return torch.where(aimed, lead[:, 0] - lead[:, 1], goal.margin(logits))

    logits, grad = part.logits_and_gradient(adv, loss)
    met = goal.met(logits)
    best.offer(adv, units.count(adv, part.images), met, rows)
    return Answer(goal.margin(logits).to(adv.dtype), met, grad)


def _spread(answer: Answer, asked: Tensor, adv: Images) -> Answer:
    """The answer for all images; those that were not queried meet no goal, with a zero gradient."""
    if len(asked) == len(adv):
        return answer
    nothing = Answer(
        torch.full_like(adv[:, 0, 0, 0], torch.nan),
        torch.zeros_like(adv[:, 0, 0, 0], dtype=torch.bool),
        torch.zeros_like(adv),
    )
    return Answer(
        *(all_.index_copy(0, asked, some) for all_, some in zip(nothing, answer, strict=True))
    )
