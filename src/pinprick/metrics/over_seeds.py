"""Mean and standard deviation over seeds. The best seed is never reported."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and the deviation with n - 1, which is NaN with fewer than two finite values."""
    numbers = np.asarray(values, dtype=np.float64)
    if not len(numbers):
        return float("nan"), float("nan")
    spread = len(numbers) > 1 and bool(np.isfinite(numbers).all())
    return float(numbers.mean()), float(numbers.std(ddof=1)) if spread else float("nan")


def by_seed(per_group: Mapping[Any, Sequence[T]]) -> list[list[T]]:
    """One entry per group for each seed, in order: never the best of several seeds.

    A group with fewer seeds than others counts with the same ones again.
    """
    most = max((len(seeds) for seeds in per_group.values()), default=0)
    return [[seeds[j % len(seeds)] for seeds in per_group.values()] for j in range(most)]
