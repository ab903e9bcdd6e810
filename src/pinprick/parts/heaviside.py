"""Gates that are open or shut, and a derivative to learn them by.

    H(w)   = 1 where w > 0, else 0                          the Heaviside step
    q_a(w) = exp(-(w / a)^2) / (|a| sqrt(pi))               stands in for its derivative

The derivative of the step is Dirac's delta, which is zero wherever one looks. ``q_a`` integrates to
one and tends to it as ``a`` goes to 0, from either side; it is the exact derivative of the smooth
step ``(1 + erf(w / |a|)) / 2``.
"""

import math

from jaxtyping import Float
from torch import Tensor

Gates = Float[Tensor, "*shape"]


def heaviside(gates: Gates) -> Gates:
    """1 where a gate is open, that is above zero, and 0 elsewhere."""
    return (gates > 0).to(gates.dtype)


def heaviside_slope(gates: Gates, a: float) -> Gates:
    """``q_a``, what stands in for the derivative of the step; ``a`` is not 0."""
    return (-(gates / a).square()).exp() / (abs(a) * math.sqrt(math.pi))
