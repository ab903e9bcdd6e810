"""Robust accuracy against the number of units that may change: a step function, computed exactly.

``needed`` has one number per image: 0 where the clean image counts as an error, infinite where the
attack failed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pinprick.errors import BadInput
from pinprick.metrics.needed import Numbers


def read_budgets(budgets: Any) -> Numbers:
    """One number of units, or several, as an array; ``BadInput`` unless all are at least 0."""
    read = np.asarray(budgets)
    if read.dtype.kind not in "iuf" or read.ndim > 1 or not (read >= 0).all():
        raise BadInput(f"budgets must be numbers of units of at least 0, got {budgets!r:.80}")
    return np.atleast_1d(read).astype(np.float64)


def robust_accuracy(needed: Numbers, budgets: Sequence[int] | Numbers) -> list[float]:
    """Share of images that stay correct when at most so many units change, for each budget."""
    if not len(needed):
        return [float("nan")] * len(budgets)
    fooled = np.searchsorted(np.sort(needed), np.asarray(budgets), side="right")
    shares: list[float] = ((len(needed) - fooled) / len(needed)).tolist()
    return shares


def robust_accuracy_curve(needed: Numbers) -> list[tuple[int, float]]:
    """The budgets at which the step function falls, with its value from there on; first 0."""
    if not len(needed):
        return []
    steps = np.unique(needed[np.isfinite(needed) & (needed > 0)]).astype(np.int64).tolist()
    budgets = [0, *steps]
    return list(zip(budgets, robust_accuracy(needed, budgets), strict=True))
