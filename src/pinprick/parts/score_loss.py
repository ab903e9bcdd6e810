"""The loss of a score search, and the losses of several candidates per image.

Like in the papers of Sparse-RS and its followers, the loss is the margin for untargeted attacks and
the cross-entropy for targeted ones. Populations are made and queried in blocks: some candidates of
every image at a time. Candidates of one image are consecutive.
"""

from collections.abc import Iterator
from typing import Literal, TypeVar

import torch
from torch import Tensor

from pinprick.goal import Goal
from pinprick.problem import Problem
from pinprick.types import Images, Logits, PerImage

ScoreLoss = Literal["margin", "cross_entropy"]

_ELEMENTS = 2**21  # most elements of the candidates in one pass, if more than one per image
_Value = TypeVar("_Value", int, float)


def score_loss(goal: Goal, logits: Logits, name: ScoreLoss | None = None) -> PerImage:
    """One loss per image, at least in single precision; infinite where it is NaN."""
    by_margin = goal.targets is None if name is None else name == "margin"
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    loss = goal.margin(logits) if by_margin else goal.cross_entropy(logits)
    return loss.nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf)


def blocks(problem: Problem, count: int) -> Iterator[slice]:
    """The blocks of ``count`` candidates per image, each small enough for one pass."""
    size = max(1, _ELEMENTS // max(1, problem.images.numel()))
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def losses_of_candidates(
    problem: Problem, candidates: Images, loss: ScoreLoss | None = None
) -> tuple[Tensor, Tensor]:
    """The loss of each candidate, and whether it meets the goal, both (batch, candidate).

    Refused candidates have an infinite loss and do not meet the goal.
    """
    number = len(candidates) // max(1, len(problem))
    owners = torch.arange(len(problem), device=candidates.device).repeat_interleave(number)
    part = problem[owners]
    logits = part.logits(candidates)
    losses = score_loss(part.goal, logits, loss)
    return losses.view(-1, number), part.goal.met(logits).view(-1, number)


def by_goal(given: _Value | None, goal: Goal, *, label: _Value, target: _Value) -> _Value:
    """The given value, or else the published one for untargeted or for targeted attacks."""
    if given is not None:
        return given
    return label if goal.targets is None else target
