"""Bootstrap intervals over images."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pinprick.metrics.estimate import LEVEL, UNDEFINED, Interval
from pinprick.metrics.needed import Numbers

# of rows of numbers, and of weights with one row per resample: one value per resample
Statistic = Callable[[Numbers, Numbers], Numbers]

RESAMPLES = 10_000
_AT_ONCE = 2**22  # draws held in memory


def bootstrap_intervals(
    numbers: Numbers,
    statistics: Sequence[Statistic],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> list[Interval]:
    """The percentile interval of each statistic when images are drawn again with replacement.

    All statistics see the same draws. Equal images are counted together, so that statistics are
    computed over distinct images with weights.

    Args:
        numbers: One column per image, and any number of rows; infinite where an attack failed.
        statistics: What is computed.
        resamples: How often images are drawn.
        seed: Of the draws; the same seed gives the same intervals.
        level: Probability of the intervals.

    Returns:
        The bounds, each the value of a resample; undefined with fewer than two images, or where no
        resample has a value.
    """
    n = numbers.shape[1]
    if n < 2:
        return [UNDEFINED] * len(statistics)
    distinct, counts = np.unique(numbers, axis=1, return_counts=True)
    column = np.repeat(np.arange(len(counts)), counts)  # of each image
    found: list[list[Numbers]] = [[] for _ in statistics]
    for weights in _draw(column, resamples, seed):
        for values, statistic in zip(found, statistics, strict=True):
            values.append(statistic(distinct, weights))
    return [percentile_interval(np.concatenate(values), level) for values in found]


def resampled_means(numbers: Numbers, *, resamples: int, seed: int = 0) -> Numbers:
    """The mean of each row of ``numbers`` in every resample, one row per resample.

    Equal numbers of images give equal draws: rows of several calls can be compared and averaged.
    NaN with fewer than two images.
    """
    n = numbers.shape[1]
    if n < 2:
        return np.full((resamples, len(numbers)), np.nan)
    return np.concatenate(
        [weights @ numbers.T / n for weights in _draw(np.arange(n), resamples, seed)]
    )


def _draw(column: NDArray[np.int64], resamples: int, seed: int) -> Iterator[Numbers]:
    """How often each column is drawn, one row per resample; ``column`` has that of each image."""
    n, columns = len(column), int(column[-1]) + 1
    rng = np.random.default_rng(seed)
    at_once = max(1, _AT_ONCE // n)
    for start in range(0, resamples, at_once):
        size = min(at_once, resamples - start)
        weights = np.empty((size, columns))
        for row in weights:  # the images of one resample at a time stay in the cache
            images = rng.integers(n, size=n)
            row[:] = np.bincount(images if columns == n else column[images], minlength=columns)
        yield weights


def percentile_interval(values: Numbers, level: float = LEVEL) -> Interval:
    """The middle ``level`` of the values that are numbers; undefined where there are none."""
    values = np.sort(values[~np.isnan(values)])
    if not len(values):
        return UNDEFINED
    last, tail = len(values) - 1, (1 - level) / 2
    return Interval(
        float(values[math.floor(last * tail)]), float(values[math.ceil(last * (1 - tail))])
    )
