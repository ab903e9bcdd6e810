"""The integral along the straight path from the clean image to the adversarial one.

    integral over u in (0, 1) of  delta * ds/dx (x + u delta)

The midpoint rule computes it. Summed over all elements, the integral equals the change of the
score, so the difference to that change is the error of the rule. Where the error is too large,
three times as many points are used. They include the earlier points, so none is computed twice.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pinprick.types import Counts

Rows = Int[Tensor, " some"]  # the image of each point
PathFractions = Float[Tensor, " some"]  # the position u of each point on its path, in (0, 1)
Products = Float[Tensor, "some part score"]  # change times gradient, per part and score


@dataclass(frozen=True)
class Integral:
    """What each part of the change adds to each score, and the number of points used."""

    parts: Float[Tensor, "batch part score"]
    steps: Counts


def integrate(
    products: Callable[[Rows, PathFractions], Products],
    totals: Float[Tensor, "batch score"],
    parts: int,
    rows: Rows,
    *,
    steps: int,
    max_steps: int,
    gap: float,
    block: int,
) -> Integral:
    """The path integral of some images.

    Args:
        products: Gives change times gradient at one point per row.
        totals: The measured change of each score, which the parts should add up to.
        parts: The number of parts that ``products`` returns.
        rows: The images to integrate; the others get zeros and 0 steps.
        steps: Points in the first round.
        max_steps: Most points per path.
        gap: Largest accepted error, as a share of the change of all scores together.
        block: Points per call of ``products``.
    """
    sums = totals.new_zeros(len(totals), parts, totals.shape[1])
    taken = torch.zeros(len(totals), dtype=torch.long, device=totals.device)
    points = _midpoints(steps)
    while len(rows):
        which = rows.repeat_interleave(len(points))
        where = points.to(totals).repeat(len(rows))
        for some, at in zip(which.split(block), where.split(block), strict=True):
            sums.index_add_(0, some, products(some, at).to(sums))
        taken[rows] = steps
        error = sums[rows].sum(dim=1) / steps - totals[rows]
        bound = gap * totals[rows].sum(dim=1).abs()
        rows = rows[error.abs().amax(dim=1) > bound]
        steps *= 3
        if steps > max_steps:
            break
        points = _midpoints(steps).view(-1, 3)[:, [0, 2]].flatten()  # the middle ones are known
    return Integral(sums / taken.clamp_min(1).view(-1, 1, 1), taken)


def _midpoints(steps: int) -> Float[Tensor, " steps"]:
    return (torch.arange(steps, dtype=torch.double) + 0.5) / steps
