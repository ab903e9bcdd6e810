"""Several candidates for each image, asked about in passes of a bounded size.

Attacks that breed populations make and judge them block by block: some candidates of every image
at a time. Candidates lie one image after another, those of an image together.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from pinprick.parts.score_loss import ScoreLoss, score_loss
from pinprick.problem import Problem
from pinprick.types import Images

_ELEMENTS = 2**21  # of the candidates in one pass, or one candidate for each image


def blocks(problem: Problem, count: int) -> Iterator[slice]:
    """Which of ``count`` candidates of each image to make and ask about at a time."""
    size = max(1, _ELEMENTS // max(1, problem.images.numel()))
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def judge(
    problem: Problem, candidates: Images, loss: ScoreLoss | None = None
) -> tuple[Tensor, Tensor]:
    """The loss of each candidate, and whether it meets the goal, both (batch, candidate).

    Who is refused an answer has an infinite loss and does not meet the goal.
    """
    number = len(candidates) // max(1, len(problem))
    owners = torch.arange(len(problem), device=candidates.device).repeat_interleave(number)
    part = problem[owners]
    logits, heard = part.ask(candidates)
    lost = score_loss(part.goal, logits, loss).masked_fill(~heard, torch.inf)
    return lost.view(-1, number), (part.goal.met(logits) & heard).view(-1, number)
