"""Steps that stay inside: the box [0, 1], the l-infinity ball, and the mask.

``to_free`` and ``from_free`` map the box to a free variable ``u``, values being
``(tanh(u) + 1) / 2``. They use ``log`` and ``tanh`` only: torch's ``atanh`` and ``cosh`` round
differently in different batches.
"""

import math

import torch
from torch import Tensor

from pinprick.problem import Problem
from pinprick.types import Allowed, Images

_EDGE = 0.999999  # an image at the edge of the box has a ``u`` that is finite
FARTHEST = math.atanh(_EDGE)


def into_ball(adv: Images, images: Images, eps: float) -> Images:
    """The nearest point of [images - eps, images + eps] and [0, 1]."""
    return adv.clamp(images - eps, images + eps).clamp(0, 1)


def keep_allowed(adv: Images, images: Images, allowed: Allowed | None) -> Images:
    """``adv`` where values may change, the clean values elsewhere."""
    return adv if allowed is None else torch.where(allowed, adv, images)


def on_grid(adv: Images, images: Images) -> Images:
    """``adv`` at the nearest values an 8-bit image can hold; at the clean value's level, that."""
    level = (adv * 255).round()
    return torch.where(level == (images * 255).round(), images, level / 255)


def signed_step(
    problem: Problem, adv: Images, grad: Images, step_size: float | Tensor, eps: float
) -> Images:
    """One step downhill by the sign of ``grad``, back into the ball, the box and the mask."""
    adv = into_ball(adv - step_size * grad.sign(), problem.images, eps)
    return keep_allowed(adv, problem.images, problem.allowed)


def accumulate(velocity: Images, grad: Images, momentum: float) -> Images:
    """``momentum * velocity + grad / |grad|_1``, image by image; a zero gradient adds nothing."""
    size = grad.flatten(1).abs().sum(dim=1).clamp_min(torch.finfo(grad.dtype).tiny)
    return momentum * velocity + grad / size.view(-1, 1, 1, 1)


def to_free(images: Images) -> Images:
    """The ``u`` of each value, to within a millionth of the box; finite at its edges."""
    scaled = (2 * images - 1) * _EDGE
    return ((1 + scaled) / (1 - scaled)).log() / 2


def from_free(free: Images) -> Images:
    """The value of each ``u``."""
    return (free.tanh() + 1) / 2


def slope(free: Images) -> Images:
    """How fast the value grows with ``u``: 1/2 in the middle of the box, almost 0 at its edges."""
    height = free.tanh()
    return (1 - height) * (1 + height) / 2
