"""Gates over a dense change, as both forms of WI-FGSM use them.

    H(w)    = 1 where w > 0, else 0                        Eq. 9: a gate is open or shut
    q_a(w)  = exp(-(w / a)^2) / (|a| sqrt(pi))             Eq. 12: stands in for the derivative of H
    pi'(w)  = ReLU(w - tau / eps)                          Eq. 19: the shrink
    w'      = Omega * H(w)                                 Eq. 22: what an open gate does to delta

The derivative of the step is Dirac's delta, which is zero almost everywhere. ``q_a`` integrates to
one and tends to it as ``a`` goes to 0. It is the exact derivative of the smooth step
``(1 + erf(w / |a|)) / 2``.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from pinprick.types import Images

Box = Literal["symmetric", "directed"]
Gates = Float[Tensor, "*shape"]


def heaviside(gates: Gates) -> Gates:
    """1 where a gate is open, that is above zero, and 0 elsewhere."""
    return (gates > 0).to(gates.dtype)


def heaviside_slope(gates: Gates, a: float) -> Gates:
    """``q_a``, which stands in for the derivative of the step; ``a`` is not 0."""
    return (-(gates / a).square()).exp() / (abs(a) * math.sqrt(math.pi))


def shrink(gates: Gates, threshold: float | Tensor) -> Gates:
    """``ReLU(w - tau / eps)``; the threshold is ``tau / eps``."""
    return (gates - threshold).clamp(min=0)


def room(images: Images, delta: Images, box: Box) -> Images:
    """How far each value can go: to the nearer edge of [0, 1], or to that ``delta`` points at."""
    if box == "symmetric":
        return torch.minimum(images, 1 - images)
    return torch.where(delta > 0, 1 - images, images)


def apply_gates(images: Images, delta: Images, omega: Images, gates: Images) -> Images:
    """``x + Omega * H(w) * delta``: valid by Proposition 2, but for rounding, which is cut off."""
    return (images + omega * heaviside(gates) * delta).clamp(0, 1)
