"""A smooth count of changed units, and the learning rate that goes with it, after σ-zero.

count(d) = (1/n) sum_i |d_i|^2 / (|d_i|^2 + sigma)        |d_i|: l2 norm over the unit's values
"""

import math

from pinprick.parts.units import Units
from pinprick.types import Images


def smooth_l0_slope(delta: Images, sigma: float, units: Units) -> Images:
    """The gradient of the count by ``delta``."""
    totals = units.total(delta.square())
    squares = units.spread(totals, delta)
    return 2 * sigma / totals.shape[1] * delta / (squares + sigma).square()


def half_cosine(rate: float, step: int, steps: int) -> float:
    """From ``rate`` at the first step to a tenth of it after the last."""
    return rate * (0.1 + 0.45 * (1 + math.cos(math.pi * step / steps)))
