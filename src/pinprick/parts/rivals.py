"""Which other class is nearest: in changed units, or to the boundary of the linearised model.

To first order class k overtakes the label y where ``x + r`` closes the gap,

    w_k = grad f_k - grad f_y,    gap_k = f_y - f_k,    distance_k = |gap_k| / |w_k|_q

and the shortest ``r`` is along ``w_k`` in l2 (q = 2), along ``sign(w_k)`` in linf (q = 1). Values
at the edge of the box that would leave it, or that may not change, are taken out of ``w_k``.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from pinprick.parts.box import keep_allowed
from pinprick.parts.choose_units import corner, promise
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Logits, PerImage

_MOST = 4096  # most gains that are added up; the rest of a larger gap is estimated


def cheapest_rivals(problem: Problem, units: Units, most: int) -> Tensor:
    """Other classes than the label, those that need the fewest units first, (batch, rank).

    Were the model linear, moving units to their corners, largest first-order gain first, would
    close the gap to a rival once the gains add up to it. That count is exact for a linear model and
    an estimate for others; DeepFool does the same for l2.

    One forward pass, and one backward pass for each of the ``most`` rivals with the highest logits.
    """
    labels = problem.goal.labels

    def margins(logits: Logits) -> Tensor:
        near = rivals_of(logits, labels, most)
        return logits.gather(1, labels.unsqueeze(1)) - logits.gather(1, near)

    logits, gradients = problem.logits_and_gradients(problem.images, margins)
    costs = []
    for gap, grad in zip(margins(logits).unbind(dim=1), gradients, strict=True):
        edge = corner(grad, problem)
        gains = promise(grad, edge, problem.images, units)
        gains = gains.topk(min(_MOST, gains.shape[1]), dim=1).values.cumsum(dim=1)
        reached = (gains <= gap.unsqueeze(1)).sum(dim=1)
        costs.append(reached + (gap / gains[:, -1]).nan_to_num(torch.inf).clamp_min(1))
    order = torch.stack(costs, dim=1).argsort(dim=1, stable=True)
    return rivals_of(logits, labels, most).gather(1, order)


def rivals_of(logits: Logits, labels: Labels, most: int) -> Tensor:
    """The classes with the highest logits other than the label, highest first, (batch, rank)."""
    others = logits.detach().scatter(1, labels.unsqueeze(1), -torch.inf)
    ranked = others.argsort(dim=1, descending=True, stable=True)
    return ranked[:, : min(most, logits.shape[1] - 1)]


class Boundary(NamedTuple):
    """The nearest class boundary of each image.

    Attributes:
        logits: The logits of the images.
        rivals: The classes that were compared, (batch, rank).
        distance: First-order distance to the nearest boundary; infinite where none can be
            approached inside the box and the mask.
        direction: A step of length one towards it.
    """

    logits: Logits
    rivals: Tensor
    distance: PerImage
    direction: Images


def nearest_boundary(
    problem: Problem, images: Images, rivals: Tensor | int, norm: Literal["l2", "linf"]
) -> Boundary:
    """The nearest boundary between the label and one of the ``rivals``, for each image.

    ``rivals`` are classes, (batch, rank), or how many classes with the highest logits to compare.
    One forward pass, and one backward pass per rival.
    """
    labels = problem.goal.labels.unsqueeze(1)

    def chosen(logits: Logits) -> Tensor:
        if isinstance(rivals, Tensor):
            return rivals
        return rivals_of(logits, problem.goal.labels, rivals)

    def minus_margins(logits: Logits) -> Tensor:
        difference = logits.gather(1, chosen(logits)) - logits.gather(1, labels)
        return difference - problem.goal.slack

    logits, slopes = problem.logits_and_gradients(images, minus_margins)
    distance = images.new_full((len(images),), torch.inf)
    direction = torch.zeros_like(images)
    for minus_margin, slope in zip(minus_margins(logits).unbind(dim=1), slopes, strict=True):
        slope = _movable(slope, problem, images)
        if norm == "l2":
            size = slope.flatten(1).square().sum(dim=1).sqrt()
            towards = slope / size.view(-1, 1, 1, 1)
        else:
            size = slope.flatten(1).abs().sum(dim=1)
            towards = slope.sign()
        away = minus_margin.abs().to(size.dtype) / size
        nearer = (size > 0) & (away < distance)  # False where it is NaN
        distance = torch.where(nearer, away, distance)
        direction = torch.where(nearer.view(-1, 1, 1, 1), towards, direction)
    return Boundary(logits, chosen(logits), distance, direction)


def _movable(slope: Images, problem: Problem, images: Images) -> Images:
    """``slope`` where a step along it stays in the box and the mask, 0 elsewhere."""
    inside = torch.where(slope > 0, images < 1, images > 0)
    return keep_allowed(slope * inside, torch.zeros_like(slope), problem.allowed)
