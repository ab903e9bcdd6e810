"""From an attack that may change k units to one that seeks the smallest k of each image.

A fixed-k attack has a core that takes one k per image. Here k is bisected on a logarithmic scale,
all images in lock-step,

    k = floor(sqrt(low * high)),

where ``low`` is the largest k that failed and ``high`` the fewest units that fooled. All passes
of all rounds are counted.

Success is not monotone in k: a core that fails at k may succeed at k - 1. So nothing is inferred
from a bracket, and every returned image was queried. Once the bracket is closed, one unit fewer is
tried again with other random numbers, and a success moves the bracket down.
"""

from collections.abc import Callable
from typing import Literal

import torch

from pinprick.parts.best import Best
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Counts, Images, Mask

K = int | Literal["smallest"]  # the setting k of every fixed-k attack

# Arguments: the problem, k per image, the images to begin at, and the number of the trial, on which
# random numbers depend. Returns the best image with at most k units, and where it fooled. Images to
# begin at are the sparsest that fooled so far, or else the problem's start or the clean image.
Core = Callable[[Problem, Counts, Images, int], tuple[Images, Mask]]


def run_at_k(
    problem: Problem, core: Core, units: Units, k: K, rounds: int, *, retries: int = 1
) -> Images:
    """The result of ``core`` with ``k`` units per image, or with the smallest k that it finds."""
    if isinstance(k, str):
        return smallest_k(problem, core, units, rounds=rounds, retries=retries)
    counts = torch.full((len(problem),), k, device=problem.images.device)
    return core(problem, counts, problem.begin, 0)[0]


def smallest_k(
    problem: Problem, core: Core, units: Units, *, rounds: int, retries: int = 1
) -> Images:
    """The sparsest image that ``core`` finds; the clean image where it finds none.

    Args:
        problem: The images.
        core: The attack at a given k.
        units: What k counts.
        rounds: Most calls of the core per image.
        retries: How often one unit fewer is tried again once the bracket is closed; 0 for a core
            without random numbers.
    """
    best, low = Best(problem.images), torch.zeros_like(problem.goal.labels)
    high = _free(problem, units) + 1  # more than there are, so not tried yet
    misses = torch.zeros_like(low)  # failures at high - 1
    rows = (high > 1).nonzero().flatten()
    for trial in range(rounds):
        part, lo, hi = problem[rows], low[rows], high[rows]
        if not len(rows) or part.all_refused:
            break
        middle = (lo.clamp_min(1) * hi).float().sqrt().long()
        k = middle.clamp(lo + 1, hi - 1).where(hi - lo > 1, hi - 1)
        lost = best.cost[rows].isinf().view(-1, 1, 1, 1)
        adv, met = core(part, k, torch.where(lost, part.begin, best.images[rows]), trial)
        count = units.count(adv, part.images)
        best.offer(adv, count, met, rows)
        fewest = count.long().where(met, hi)
        missed = misses[rows] + (k == hi - 1)
        misses[rows] = (fewest - 1 == lo).long().where(met, missed)
        low[rows] = torch.minimum(lo, fewest - 1).where(met, torch.maximum(lo, k))
        high[rows] = fewest
        closed = fewest - low[rows] <= 1
        rows = rows[(fewest > 1) & ~(closed & (misses[rows] > retries))]
    return best.images


def _free(problem: Problem, units: Units) -> Counts:
    """Number of units of each image that may change."""
    if problem.allowed is None:
        return torch.full_like(problem.goal.labels, units.total(problem.images[:1]).shape[1])
    return units.largest(problem.allowed.to(problem.images.dtype)).gt(0).sum(dim=1)
