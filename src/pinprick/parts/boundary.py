"""The nearest class boundary of the linearised model, and the way there.

To first order class k overtakes the label y where ``x + r`` closes the gap,

    w_k = grad f_k - grad f_y,    gap_k = f_y - f_k,    distance_k = |gap_k| / |w_k|_q

and the shortest ``r`` is along ``w_k`` in l2 (q = 2), along ``sign(w_k)`` in linf (q = 1). Values
that stand at the edge of the box and would leave it, or may not change, are taken out of ``w_k``.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from pinprick.parts.aim import rivals as nearest_rivals
from pinprick.parts.box import keep_allowed
from pinprick.problem import Problem
from pinprick.types import Images, Logits, PerImage


class Boundary(NamedTuple):
    """What was seen of the boundaries around some images.

    Attributes:
        logits: What the model says of the images.
        rivals: The classes that were looked at, (batch, rank).
        distance: How far the nearest boundary is to first order; infinite where none can be
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

    ``rivals`` are classes, (batch, rank), or how many of those with the highest logits to look at.
    One forward pass, and one backward pass for each rival.
    """
    labels = problem.goal.labels.unsqueeze(1)

    def chosen(logits: Logits) -> Tensor:
        if isinstance(rivals, Tensor):
            return rivals
        return nearest_rivals(logits, problem.goal.labels, rivals)

    def leads(logits: Logits) -> Tensor:
        lead = logits.gather(1, chosen(logits)) - logits.gather(1, labels)
        return lead - problem.goal.slack

    logits, slopes = problem.logits_and_gradients(images, leads)
    distance = images.new_full((len(images),), torch.inf)
    direction = torch.zeros_like(images)
    for lead, slope in zip(leads(logits).unbind(dim=1), slopes, strict=True):
        slope = _movable(slope, problem, images)
        if norm == "l2":
            size = slope.flatten(1).square().sum(dim=1).sqrt()
            towards = slope / size.view(-1, 1, 1, 1)
        else:
            size = slope.flatten(1).abs().sum(dim=1)
            towards = slope.sign()
        away = lead.abs().to(size.dtype) / size
        nearer = (size > 0) & (away < distance)  # never so where it is not a number
        distance = torch.where(nearer, away, distance)
        direction = torch.where(nearer.view(-1, 1, 1, 1), towards, direction)
    return Boundary(logits, chosen(logits), distance, direction)


def _movable(slope: Images, problem: Problem, images: Images) -> Images:
    """``slope`` where a step along it stays in the box and the mask, 0 elsewhere."""
    inside = torch.where(slope > 0, images < 1, images > 0)
    return keep_allowed(slope * inside, torch.zeros_like(slope), problem.allowed)
