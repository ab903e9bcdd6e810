"""What each group does along the straight way from clean to adversarial: integrated gradients.

    O_i = -delta_i * integral of ds_y/dx_i (x + u delta) du      L_i the same of s_t, with a plus

summed over the elements of a group, by the midpoint rule. The sum over all groups is the whole
change, so what is missing from it is the error of the rule. Where that is above ``gap`` of the
whole change of the margin, three times as many points are taken, which keeps the old ones.
One forward and two backward passes a point. The way leads through pixels at half strength, which
no attack made: a cross-check, not the definition.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pinprick.explain.coalitions import Chosen, Coalitions
from pinprick.explain.gauge import class_scores
from pinprick.explain.groups import Groups
from pinprick.explain.shapley import Effects
from pinprick.types import Counts, Logits


@dataclass(frozen=True)
class Path:
    """The obscuring and the leading effect of each group, and how many points they come from."""

    effects: Effects
    steps: Counts


def integrate(
    coalitions: Coalitions,
    *,
    steps: int = 24,
    max_steps: int = 216,
    gap: float = 0.02,
) -> Path:
    """Integrated gradients for all groups of all images.

    Args:
        coalitions: What can be asked.
        steps: Points in the first round.
        max_steps: Points at most, whatever is missing.
        gap: What may be missing, as a share of the whole change of the margin.
    """
    count, totals = coalitions.groups.count, coalitions.totals
    sums = totals.new_zeros(len(count), coalitions.groups.most, 2)
    taken = torch.zeros_like(count)
    rows, points = (count > 0).nonzero().squeeze(1), _midpoints(steps)
    while len(rows):
        sums[rows] += _gradients(coalitions, rows, points.to(sums))
        taken[rows] = steps
        missing = sums[rows].sum(dim=1) / steps - totals[rows]
        bound = gap * totals[rows].sum(dim=1).abs()
        rows = rows[missing.abs().amax(dim=1) > bound]
        steps *= 3
        if steps > max_steps:
            break
        points = _midpoints(steps).view(-1, 3)[:, [0, 2]].flatten()  # the middle ones are known
    return Path(sums / taken.clamp_min(1).view(-1, 1, 1), taken)


def _midpoints(steps: int) -> Float[Tensor, " steps"]:
    return (torch.arange(steps, dtype=torch.double) + 0.5) / steps


def _gradients(
    coalitions: Coalitions, rows: Chosen, points: Float[Tensor, " point"]
) -> Float[Tensor, "some group 2"]:
    """The change times the gradients of both pushes, for each group, added up over the points."""
    which = torch.arange(len(rows), device=rows.device).repeat_interleave(len(points))
    where = points.repeat(len(rows))
    sums = points.new_zeros(len(rows), coalitions.groups.most, 2)
    for some, at in zip(which.split(coalitions.block), where.split(coalitions.block), strict=True):
        part, adversarial = coalitions.problem[rows[some]], coalitions.adversarial[rows[some]]
        delta = adversarial - part.images
        way = part.images + at.to(delta.dtype).view(-1, 1, 1, 1) * delta
        classes = coalitions.classes[rows[some]]

        def scores(logits: Logits, classes: Tensor = classes) -> Float[Tensor, "some 2"]:
            return class_scores(logits, classes, coalitions.gauge)

        index = coalitions.groups.index[rows[some]]
        groups = Groups(index, coalitions.groups.count[rows[some]])
        _, gradients = part.logits_and_gradients(way, scores)
        for side, gradient in enumerate(gradients):
            effect = groups.total((gradient * delta).sum(dim=1))
            sign = (-1.0, 1.0)[side]
            sums[:, : effect.shape[1], side].index_add_(0, some, sign * effect)
    return sums
