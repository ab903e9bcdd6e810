"""What a search by scores lowers: the margin to leave a label, the cross-entropy to reach a target.

That is how the papers of Sparse-RS and its followers have it. Either can be asked for by name.
"""

from collections.abc import Iterator
from typing import Literal, TypeVar

import torch
from torch import Tensor

from pinprick.goal import Goal
from pinprick.problem import Problem
from pinprick.types import Images, Logits, PerImage

ScoreLoss = Literal["margin", "cross_entropy"]


def score_loss(goal: Goal, logits: Logits, name: ScoreLoss | None = None) -> PerImage:
    """One loss for each image, in single precision at least; infinite where it is no number."""
    by_margin = goal.targets is None if name is None else name == "margin"
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    loss = goal.margin(logits) if by_margin else goal.cross_entropy(logits)
    return loss.nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf)


# Several candidates for each image, asked about in passes of a bounded size.
#
# Attacks that breed populations make and judge them block by block: some candidates of every image
# at a time. Candidates lie one image after another, those of an image together.


_ELEMENTS = 2**21  # of the candidates in one pass, or one candidate for each image


def blocks(problem: Problem, count: int) -> Iterator[slice]:
    """Which of ``count`` candidates of each image to make and ask about at a time."""
    size = max(1, _ELEMENTS // max(1, problem.images.numel()))
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def judge(
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


# Settings whose published value depends on the goal.


_Value = TypeVar("_Value", int, float)


def by_goal(given: _Value | None, goal: Goal, *, label: _Value, target: _Value) -> _Value:
    """What was given, or else the value for leaving a label or for reaching a target."""
    if given is not None:
        return given
    return label if goal.targets is None else target
