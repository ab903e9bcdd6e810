"""DeepFool as SparseFool needs it: a point on the boundary, and the class behind it."""

from collections.abc import Callable

import torch
from torch import Tensor

from pinprick.parts.aim import rivals as nearest_rivals
from pinprick.parts.boundary import nearest_boundary
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Logits, PerImage

_SHORTEST = 1e-4  # the least that a step takes


def cross(
    problem: Problem, images: Images, number: int, steps: int, overshoot: float
) -> tuple[Images, Labels]:
    """Points on the boundary that DeepFool finds, and the classes behind it.

    Args:
        problem: The images, and the labels to leave.
        images: Where each starts.
        number: How many rival classes are looked at.
        steps: The most steps.
        overshoot: How much further than the boundary is tried.
    """
    points, reached = images.clone(), torch.zeros_like(problem.goal.labels)
    rows = torch.arange(len(images), device=images.device)
    rivals: Tensor | int = number
    for _ in range(steps):
        part, x = problem[rows], points[rows]
        near = nearest_boundary(part, x, rivals, "l2")
        reached[rows] = nearest_rivals(near.logits, part.goal.labels, 1)[:, 0]
        free = near.distance.isfinite()
        length = near.distance.clamp_min(_SHORTEST).view(-1, 1, 1, 1)
        moved = (x + length * near.direction)[free].clamp(0, 1)
        rows, part, rivals = rows[free], part[free], near.rivals[free]
        if not len(rows):
            break
        points[rows] = moved
        further = images[rows] + (1 + overshoot) * (moved - images[rows])
        logits = part.logits(further.clamp(0, 1))
        reached[rows] = nearest_rivals(logits, part.goal.labels, 1)[:, 0]
        short = ~part.goal.met(logits)
        rows, rivals = rows[short], rivals[short]
        if not len(rows):
            break
    return points, reached


def lead_of(reached: Labels, labels: Labels) -> Callable[[Logits], PerImage]:
    """How far the class that was reached is ahead of the label."""

    def lead(logits: Logits) -> PerImage:
        ahead, own = logits.gather(1, torch.stack((reached, labels), dim=1)).unbind(dim=1)
        return ahead - own

    return lead
