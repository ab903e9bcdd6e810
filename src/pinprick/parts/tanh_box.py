"""The box [0, 1] without edges: values as ``(tanh(u) + 1) / 2`` of a free variable ``u``.

All by ``log`` and ``tanh``: torch's ``atanh`` and ``cosh`` round differently in different batches.
"""

import math

from pinprick.types import Images

_EDGE = 0.999999  # an image at the edge of the box has a ``u`` that is finite
FARTHEST = math.atanh(_EDGE)


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
