"""Momentum over gradients of equal size: what is added each step has l1 norm one."""

import torch

from pinprick.errors import BadInput
from pinprick.types import Images


def check_momentum(name: str, momentum: float) -> None:
    """Raise ``BadInput`` unless earlier gradients can be kept at this weight."""
    if not 0 <= momentum < torch.inf:
        raise BadInput(f"{name} needs momentum >= 0, 1 as a rule, got {momentum:g}")


def accumulate(velocity: Images, grad: Images, momentum: float) -> Images:
    """``momentum * velocity + grad / |grad|_1``, image by image; a zero gradient adds nothing."""
    size = grad.flatten(1).abs().sum(dim=1).clamp_min(torch.finfo(grad.dtype).tiny)
    return momentum * velocity + grad / size.view(-1, 1, 1, 1)
