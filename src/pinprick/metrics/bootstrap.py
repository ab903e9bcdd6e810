"""Bootstrap intervals over images."""

import math
from collections.abc import Callable

import numpy as np

from pinprick.metrics.estimate import LEVEL, UNDEFINED, Interval
from pinprick.metrics.needed import Numbers

Statistic = Callable[[Numbers, Numbers], Numbers]  # of numbers and weights, as ``mean_needed``

RESAMPLES = 10_000
_AT_ONCE = 2**22  # weights held in memory


def bootstrap_interval(
    numbers: Numbers,
    statistic: Statistic,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Interval:
    """The percentile interval of a statistic when images are drawn again with replacement.

    Equal images are drawn together: how often each distinct column occurs in a resample is
    multinomial. So the cost depends on the number of distinct columns, not of images.

    Args:
        numbers: One row per seed, one column per image; infinite where an attack failed.
        statistic: What is computed per seed; its mean over seeds is resampled.
        resamples: How often images are drawn.
        seed: Of the draws; the same seed gives the same interval.
        level: Probability of the interval.

    Returns:
        The bounds, never between two resamples; undefined with fewer than two images, or where no
        resample has a value.
    """
    n = numbers.shape[1]
    if n < 2:
        return UNDEFINED
    distinct, counts = np.unique(numbers, axis=1, return_counts=True)
    rng = np.random.default_rng(seed)
    at_once = max(1, _AT_ONCE // len(counts))
    drawn = []
    for start in range(0, resamples, at_once):
        size = min(at_once, resamples - start)
        weights = rng.multinomial(n, counts / n, size=size).astype(np.float64)
        drawn.append(np.mean([statistic(row, weights) for row in distinct], axis=0))
    found = np.sort(np.concatenate(drawn))  # NaN last
    found = found[~np.isnan(found)]
    if not len(found):
        return UNDEFINED
    last, tail = len(found) - 1, (1 - level) / 2
    return Interval(
        float(found[math.floor(last * tail)]), float(found[math.ceil(last * (1 - tail))])
    )
