"""Signed steps inside an l-infinity ball: what the FGSM family has in common."""

import torch

from pinprick.parts.box import into_ball, keep_allowed
from pinprick.problem import Problem
from pinprick.types import Images


def signed_step(
    problem: Problem, adv: Images, grad: Images, step_size: float, eps: float
) -> Images:
    """One step downhill by the sign of ``grad``, back into the ball, the box and the mask."""
    adv = into_ball(adv - step_size * grad.sign(), problem.images, eps)
    return keep_allowed(adv, problem.images, problem.allowed)


def accumulate(velocity: Images, grad: Images, momentum: float) -> Images:
    """``momentum * velocity + grad / |grad|_1``, image by image; a zero gradient adds nothing."""
    size = grad.flatten(1).abs().sum(dim=1).clamp_min(torch.finfo(grad.dtype).tiny)
    return momentum * velocity + grad / size.view(-1, 1, 1, 1)
