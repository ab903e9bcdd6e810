"""Which rival class is cheapest to reach, counted to first order.

Were the model linear, moving units to their corners in the order of their promise would close the
gap to a rival after so many of them that their promises add up to it. That count is exact for a
linear model and a guess for others; it is what DeepFool does for l2, done for l0.
"""

import torch
from torch import Tensor

from pinprick.parts.gates import corner, promise
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Labels, Logits

_MOST = 4096  # promises that are added up; a gap that needs more counts by what is left of it


def cheapest_rivals(problem: Problem, units: Units, most: int) -> Tensor:
    """The classes next to the label, those that need the fewest units first, (batch, rank).

    One forward pass, and one backward pass for each of the ``most`` rivals of the highest logits.
    """
    labels = problem.goal.labels

    def leads(logits: Logits) -> Tensor:
        near = rivals(logits, labels, most)
        return logits.gather(1, labels.unsqueeze(1)) - logits.gather(1, near)

    logits, gradients = problem.logits_and_gradients(problem.images, leads)
    costs = []
    for gap, grad in zip(leads(logits).unbind(dim=1), gradients, strict=True):
        edge = corner(grad, problem)
        gains = promise(grad, edge, problem.images, units)
        gains = gains.topk(min(_MOST, gains.shape[1]), dim=1).values.cumsum(dim=1)
        reached = (gains <= gap.unsqueeze(1)).sum(dim=1)
        costs.append(reached + (gap / gains[:, -1]).nan_to_num(torch.inf).clamp_min(1))
    order = torch.stack(costs, dim=1).argsort(dim=1, stable=True)
    return rivals(logits, labels, most).gather(1, order)


def rivals(logits: Logits, labels: Labels, most: int) -> Tensor:
    """The classes of the highest logits, the label left out, highest first, (batch, rank)."""
    others = logits.detach().scatter(1, labels.unsqueeze(1), -torch.inf)
    ranked = others.argsort(dim=1, descending=True, stable=True)
    return ranked[:, : min(most, logits.shape[1] - 1)]
