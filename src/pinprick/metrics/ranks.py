"""Ranks that hold: an entry is behind those whose interval lies wholly above its own."""

import math
from collections.abc import Sequence

from pinprick.metrics.estimate import Estimate


def shared_ranks(estimates: Sequence[Estimate]) -> list[int]:
    """The rank of each estimate, 1 for the best.

    A rank is one more than the number of entries whose interval lies wholly above. So the intervals
    of entries with the same rank overlap, and a chain of overlaps does not make one rank of all.
    An estimate without an interval counts as the interval from its value to its value.
    """
    bounds = [_bounds(estimate) for estimate in estimates]
    return [1 + sum(low > own_high for low, _ in bounds) for _, own_high in bounds]


def _bounds(estimate: Estimate) -> tuple[float, float]:
    """The interval, and the value inside it."""
    low = estimate.value if math.isnan(estimate.low) else min(estimate.low, estimate.value)
    high = estimate.value if math.isnan(estimate.high) else max(estimate.high, estimate.value)
    return low, high
