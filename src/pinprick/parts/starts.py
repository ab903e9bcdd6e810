"""Images that meet the goal, at which attacks by classes alone begin.

The caller's start is queried first. Where it does not meet the goal, noise is tried until it does.
Each try is a query and is counted.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pinprick.parts.box import keep_allowed
from pinprick.problem import Problem
from pinprick.types import Counts, Images, Mask, PerImage

Propose = Callable[[Problem, int], Images]  # one candidate per image at a try of this number


@dataclass(frozen=True)
class Starts:
    """The images to begin at.

    Attributes:
        images: The first candidates that met the goal; the clean images where none did.
        met: Where one did.
        asked: Queries per image.
    """

    images: Images
    met: Mask
    asked: Counts


def given_starts(problem: Problem) -> Starts:
    """The start of each image where it meets the goal.

    One query per image at most. A start that is the clean image is not queried.
    """
    images = problem.images.clone()
    met = torch.zeros(len(problem), dtype=torch.bool, device=images.device)
    asked = torch.zeros_like(met, dtype=torch.long)
    if problem.start is not None:
        given = keep_allowed(problem.start, images, problem.allowed)
        other = (given != images).flatten(1).any(dim=1).nonzero().flatten()
        if len(other):
            part = problem[other]
            met[other] = part.goal.met(part.logits(given[other]))
            images = torch.where(met.view(-1, 1, 1, 1), given, images)
            asked[other] = 1
    return Starts(images, met, asked)


def find_starts(problem: Problem, propose: Propose, *, tries: int, queries: int) -> Starts:
    """The start of each image if it meets the goal, or the first of ``tries`` candidates that does.

    At most ``queries`` queries per image.
    """
    given = given_starts(problem)
    images, met, asked = given.images, given.met, given.asked
    rows = (~met & ~problem.refused).nonzero().flatten()
    for number in range(tries):
        rows = rows[asked[rows] < queries]
        if not len(rows):
            break
        part = problem[rows]
        candidates = keep_allowed(propose(part, number), part.images, part.allowed)
        found = part.goal.met(part.logits(candidates))
        images[rows[found]], met[rows] = candidates[found], found
        asked[rows] += 1
        rows = rows[~(found | part.refused)]
    return Starts(images, met, asked)


def salt_and_pepper(problem: Problem, share: float | PerImage, *, step: int, use: str) -> Images:
    """A share of the pixels in random pure colours, 0 or 1 in every channel."""
    images, rng = problem.images, problem.rng
    if isinstance(share, Tensor):
        share = share.view(-1, 1, 1)
    noisy = rng.uniform(*images.shape[2:], step=step, use=f"{use}, places") < share
    colours = rng.integers(2, *images.shape[1:], step=step, use=f"{use}, colours")
    return torch.where(noisy.unsqueeze(1), colours.to(images.dtype), images)


def uniform_noise(problem: Problem, *, step: int, use: str) -> Images:
    """Every value at random, independent of the image."""
    shape = problem.images.shape[1:]
    return problem.rng.uniform(*shape, step=step, use=use).to(problem.images.dtype)
