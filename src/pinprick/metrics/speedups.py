"""How much less one attack costs than another on the same images, by both conventions."""

import numpy as np

from pinprick.metrics.needed import Numbers


def mean_of_ratios(baseline: Numbers, cost: Numbers) -> float:
    """The mean over images of baseline cost / cost; every image counts alike.

    Images on which either attack costs nothing are left out; NaN where none is left.
    """
    both = (baseline > 0) & (cost > 0)
    return float((baseline[both] / cost[both]).mean()) if both.any() else float("nan")


def ratio_of_sums(baseline: Numbers, cost: Numbers) -> float:
    """The baseline's total cost / the total cost; costly images count more.

    NaN where nothing was spent.
    """
    total = float(cost.sum())
    return float(np.sum(baseline)) / total if total > 0 else float("nan")
