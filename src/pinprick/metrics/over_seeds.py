"""Mean and standard deviation over seeds. The best seed is never reported."""

from collections.abc import Sequence

import numpy as np


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and the deviation with n - 1, which is NaN with fewer than two finite values."""
    numbers = np.asarray(values, dtype=np.float64)
    if not len(numbers):
        return float("nan"), float("nan")
    spread = len(numbers) > 1 and bool(np.isfinite(numbers).all())
    return float(numbers.mean()), float(numbers.std(ddof=1)) if spread else float("nan")
