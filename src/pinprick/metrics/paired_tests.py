"""Tests of two attacks on the same images, and the correction for several of them.

Both tests are two-sided. A p value is the probability of a difference at least as large if the two
attacks were alike.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pinprick.metrics.needed import Numbers

_EXACT = 100  # images that differ, up to which Wilcoxon's test is exact


def mcnemar(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """Exact p value of McNemar's test: does one attack fool more images than the other?

    Only images that exactly one of the attacks fooled count.
    """
    alone = int((first & ~second).sum()), int((second & ~first).sum())
    n = sum(alone)
    ways = total = 1  # of choosing 0 of n, and of all choices so far
    for k in range(min(alone)):
        ways = ways * (n - k) // (k + 1)
        total += ways
    return min(1.0, 2 * total / (1 << n))


def wilcoxon(first: Numbers, second: Numbers) -> float:
    """P value of Wilcoxon's signed-rank test: does one attack need fewer units than the other?

    A failure is worse than every success, and two failures are a tie. Ties between the attacks are
    left out; differences of the same size share their mean rank. Exact up to 100 images that
    differ, by the normal distribution beyond.
    """
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        difference = np.where(first == second, 0.0, first - second)
    difference = difference[difference != 0]
    if not len(difference):
        return 1.0
    ranks = _doubled_ranks(np.abs(difference))
    positive, total = int(ranks[difference > 0].sum()), int(ranks.sum())
    if len(ranks) > _EXACT:
        deviation = math.sqrt(float((ranks.astype(np.float64) ** 2).sum())) / 2
        return math.erfc(abs(positive - total / 2) / deviation / math.sqrt(2))
    chance = np.zeros(total + 1)  # of each sum of ranks, where every sign is a coin
    chance[0] = 1.0
    for rank in ranks.tolist():
        chance[rank:] += chance[: total + 1 - rank].copy()
        chance /= 2
    tail = min(float(chance[: positive + 1].sum()), float(chance[positive:].sum()))
    return min(1.0, 2 * tail)


def _doubled_ranks(values: Numbers) -> NDArray[np.int64]:
    """Twice the rank of each value from the smallest; equal values share the mean rank."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    doubled: NDArray[np.int64] = (2 * last - counts + 1)[group].astype(np.int64)
    return doubled


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values by Holm's correction for so many tests, in the order given."""
    corrected, largest = [0.0] * len(p_values), 0.0
    for done, number in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - done) * p_values[number]))
        corrected[number] = largest
    return corrected
