"""How far each element goes: gradient descent on the length of the change and the hinge."""

import torch
from torch import Tensor

from pinprick.problem import Problem
from pinprick.types import Images, Logits, PerImage


def resize(
    problem: Problem, sizes: Tensor, gates: Tensor, weight: PerImage, step_size: float
) -> tuple[Tensor, Images, Logits]:
    """The sizes after a step, and the image before it with what the model says of it."""
    adv, logits, pull = ask(problem, sizes * gates, weight)
    return sizes - step_size * (2 * sizes * gates.square() + pull * gates), adv, logits


def ask(problem: Problem, change: Tensor, weight: PerImage) -> tuple[Images, Logits, Tensor]:
    """The changed image, its logits, and the gradient of the weighted hinge by the change.

    An element beyond the edge of the box has none, as the image stops at the edge.
    """
    images, goal = problem.images, problem.goal
    moved = images.to(change.dtype) + change
    adv = torch.where(change == 0, images, moved.clamp(0, 1).to(images.dtype))
    logits, grad = problem.logits_and_gradient(adv, goal.margin)
    push = torch.where(goal.margin(logits) >= 0, weight, 0)  # a tie is pushed on
    inside = (moved >= 0) & (moved <= 1)
    return adv, logits, push.view(-1, 1, 1, 1) * grad.to(change.dtype).where(inside, 0)
