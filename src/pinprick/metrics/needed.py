"""Mean and median of the units that images needed; a failure needed infinitely many.

Each function takes one number per image, and for resampling how often each image counts.
"""

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def mean_needed(needed: Numbers, weights: Numbers | None = None) -> Numbers:
    """The mean; infinite as soon as one image failed.

    Args:
        needed: One number per image, infinite where the attack failed.
        weights: How often each image counts, one row per resample; None for once each.

    Returns:
        One number per row of ``weights``; NaN where there are no images.
    """
    weights = _once_each(needed) if weights is None else weights
    failed = np.isinf(needed)
    mean = _ratio(weights @ np.where(failed, 0.0, needed), weights.sum(axis=1))
    return np.where((weights[:, failed] > 0).any(axis=1), np.inf, mean)


def median_needed(needed: Numbers, weights: Numbers | None = None) -> Numbers:
    """The median: of an even number of images the mean of the middle two. As ``mean_needed``."""
    if not len(needed):
        return np.full(1 if weights is None else len(weights), np.nan)
    if weights is None:
        in_order = np.sort(needed)
        return (in_order[[(len(needed) - 1) // 2]] + in_order[[len(needed) // 2]]) / 2
    order = np.argsort(needed, kind="stable")
    below = weights[:, order].cumsum(axis=1)
    count = below[:, -1:]
    lower = (below > (count - 1) // 2).argmax(axis=1)
    upper = (below > count // 2).argmax(axis=1)
    middle: Numbers = (needed[order][lower] + needed[order][upper]) / 2
    return middle


def mean_over_fooled(needed: Numbers, weights: Numbers | None = None) -> Numbers:
    """The mean over fooled images alone; NaN where there are none. As ``mean_needed``.

    A weak attack that fools only easy images looks sparse by this number. Compare it only between
    attacks that fool the same images.
    """
    weights = _once_each(needed) if weights is None else weights
    fooled = np.isfinite(needed)
    return _ratio(weights[:, fooled] @ needed[fooled], weights[:, fooled].sum(axis=1))


def _once_each(needed: Numbers) -> Numbers:
    return np.ones((1, len(needed)))


def _ratio(total: Numbers, count: Numbers) -> Numbers:
    """NaN where ``count`` is zero."""
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
