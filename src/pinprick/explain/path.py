"""One integral along the straight path from the clean image to the adversarial one.

    integral over u in (0, 1) of  delta * ds/dx (x + u delta)

by the midpoint rule. Summed over all elements, the integral is the change of the score, so what is
missing from the sum is the error of the rule. Where that is too large, three times as many points
are used. The points known so far are among them, so none is computed twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pinprick.result import AttackResult
from pinprick.types import Counts, Labels, Logits

Rows = Int[Tensor, " some"]
Along = Float[Tensor, " some"]  # where on its path each point lies, in (0, 1)
Products = Float[Tensor, "some part score"]  # change times gradient, of each part and score


@dataclass(frozen=True)
class Integral:
    """What each part of the change adds to each score, and the number of points used."""

    parts: Float[Tensor, "batch part score"]
    steps: Counts


def integrate(
    products: Callable[[Rows, Along], Products],
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
        products: Change times gradient at one point of the path of each row.
        totals: How much each score really changes; decides whether there are points enough.
        parts: The number of parts that ``products`` returns.
        rows: The images to integrate; the others get zeros and 0 steps.
        steps: Points in the first round.
        max_steps: Points at most.
        gap: What may be missing, as a share of the change of all scores together.
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
        missing = sums[rows].sum(dim=1) / steps - totals[rows]
        bound = gap * totals[rows].sum(dim=1).abs()
        rows = rows[missing.abs().amax(dim=1) > bound]
        steps *= 3
        if steps > max_steps:
            break
        points = _midpoints(steps).view(-1, 3)[:, [0, 2]].flatten()  # the middle ones are known
    return Integral(sums / taken.clamp_min(1).view(-1, 1, 1), taken)


def _midpoints(steps: int) -> Float[Tensor, " steps"]:
    return (torch.arange(steps, dtype=torch.double) + 0.5) / steps


# What a class is given, in numbers that can be compared between images.
#
# A constant added to all logits changes no decision, so the change of one logit means nothing until
# that freedom is taken away. ``centred`` takes off the mean of all logits, which is linear;
# ``log_probabilities`` is bounded but couples the classes: what raises one lowers the others.
# ``raw`` leaves logits as they are. The gap between two classes is the same in all three.


Gauge = Literal["centred", "log_probabilities", "raw"]
GAUGES: tuple[Gauge, ...] = ("centred", "log_probabilities", "raw")


def class_scores(
    logits: Logits, classes: Int[Tensor, "batch some"], gauge: Gauge
) -> Float[Tensor, "batch some"]:
    """The scores of some classes of each image, in double precision."""
    logits = logits.double()
    if gauge == "centred":
        logits = logits - logits.mean(dim=1, keepdim=True)
    elif gauge == "log_probabilities":
        logits = logits - torch.logsumexp(logits, dim=1, keepdim=True)
    return logits.gather(1, classes)


# The class that an adversarial image is led to.


def rivals(result: AttackResult) -> Labels:
    """For each image the class that leading noise is about, never the true one.

    It is the target where there was one, else what the adversarial image is taken for; where that
    is still the true class, since the attack failed, the one that comes nearest to it.
    """
    if result.goal.targets is not None:
        return result.goal.targets
    labels = result.goal.labels.unsqueeze(1)
    return result.adversarial_logits.scatter(1, labels, -torch.inf).argmax(dim=1)
