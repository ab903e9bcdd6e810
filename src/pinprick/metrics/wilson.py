"""The Wilson interval of a rate."""

import math
from statistics import NormalDist

from pinprick.metrics.estimate import LEVEL, UNDEFINED, Interval


def wilson_interval(count: int | float, n: int, level: float = LEVEL) -> Interval:
    """The interval of the rate ``count / n``; unlike the usual one it is sound near 0 and 1."""
    if n == 0:
        return UNDEFINED
    z = NormalDist().inv_cdf((1 + level) / 2)
    rate = count / n
    middle = rate + z**2 / (2 * n)
    half = z * math.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2))
    low, high = (middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)
    # at the ends the bound is the rate itself, which rounding would miss
    return Interval(0.0 if count == 0 else low, 1.0 if count == n else high)
