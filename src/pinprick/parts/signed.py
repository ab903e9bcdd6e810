"""Signed steps inside an l-infinity ball: what the FGSM family has in common."""

import torch

from pinprick.errors import BadInput
from pinprick.parts.box import into_ball, keep_allowed
from pinprick.problem import Problem
from pinprick.types import Images


def check_ball(name: str, eps: float, steps: int = 1, step_size: float | None = None) -> None:
    """Raise ``BadInput`` unless radius, number and length of the steps make sense."""
    for setting, value in (("eps", eps), ("step_size", step_size)):
        if value is not None and not 0 < value <= 1:
            raise BadInput(
                f"{name} needs {setting} above 0 and at most 1, got {value:g}; "
                "pixel values run from 0 to 1, so 8 of 255 levels are 8/255"
            )
    if steps < 1:
        raise BadInput(f"{name} needs steps >= 1, got {steps}")


def signed_step(
    problem: Problem, adv: Images, grad: Images, step_size: float, eps: float
) -> Images:
    """One step downhill by the sign of ``grad``, back into the ball, the box and the mask."""
    adv = into_ball(adv - step_size * grad.sign(), problem.images, eps)
    return keep_allowed(adv, problem.images, problem.allowed)


# Momentum over gradients of equal size: what is added each step has l1 norm one.


def check_momentum(name: str, momentum: float) -> None:
    """Raise ``BadInput`` unless earlier gradients can be kept at this weight."""
    if not 0 <= momentum < torch.inf:
        raise BadInput(f"{name} needs momentum >= 0, 1 as a rule, got {momentum:g}")


def accumulate(velocity: Images, grad: Images, momentum: float) -> Images:
    """``momentum * velocity + grad / |grad|_1``, image by image; a zero gradient adds nothing."""
    size = grad.flatten(1).abs().sum(dim=1).clamp_min(torch.finfo(grad.dtype).tiny)
    return momentum * velocity + grad / size.view(-1, 1, 1, 1)
