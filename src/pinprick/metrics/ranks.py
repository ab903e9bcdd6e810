"""Ranks that hold: entries whose intervals overlap share a rank."""

import math
from collections.abc import Sequence

from pinprick.metrics.estimate import Estimate


def shared_ranks(estimates: Sequence[Estimate]) -> list[int]:
    """The rank of each estimate, 1 for the highest.

    Entries whose intervals overlap share a rank, and so does a chain of them: two different ranks
    mean two intervals apart. A rank is one more than the number of entries in better ranks.
    An estimate without an interval counts as the interval from its value to its value.
    """
    order = sorted(range(len(estimates)), key=lambda i: estimates[i].value, reverse=True)
    ranks = [0] * len(estimates)
    # Intervals need not follow the order of values, so ranks part where all before lie above.
    highs = [_bounds(estimates[i])[1] for i in order]
    lowest = math.inf
    rank = 1
    for number, i in enumerate(order):
        if number and max(highs[number:]) < lowest:
            rank = number + 1
        ranks[i] = rank
        lowest = min(lowest, _bounds(estimates[i])[0])
    return ranks


def _bounds(estimate: Estimate) -> tuple[float, float]:
    """The interval, and the value inside it."""
    low = estimate.value if math.isnan(estimate.low) else min(estimate.low, estimate.value)
    high = estimate.value if math.isnan(estimate.high) else max(estimate.high, estimate.value)
    return low, high
