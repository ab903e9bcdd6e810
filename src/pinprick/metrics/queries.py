"""Success against queries: the forward passes up to the first success.

``first_success`` has one number per correct image, infinite where the attack failed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pinprick.metrics.needed import Numbers, mean_over_fooled, median_needed


@dataclass(frozen=True)
class Queries:
    """Queries up to the first success.

    Attributes:
        mean_fooled, median_fooled: Over fooled images alone; NaN where there are none.
        mean_all, median_all: Over all correct images; a failure counts as the budget.
    """

    mean_fooled: float
    median_fooled: float
    mean_all: float
    median_all: float


def fooled_by_queries(first_success: Numbers, queries: Sequence[int]) -> list[float]:
    """Share of correct images that were fooled with at most so many queries, for each number."""
    if not len(first_success):
        return [float("nan")] * len(queries)
    fooled = np.searchsorted(np.sort(first_success), np.asarray(queries), side="right")
    shares: list[float] = (fooled / len(first_success)).tolist()
    return shares


def summarise_queries(first_success: Numbers, budget: float) -> Queries:
    """Mean and median, by both conventions."""
    fooled = first_success[np.isfinite(first_success)]
    charged = np.where(np.isfinite(first_success), first_success, budget)
    return Queries(
        mean_fooled=float(mean_over_fooled(first_success)[0]),
        median_fooled=float(median_needed(fooled)[0]),
        mean_all=float(mean_over_fooled(charged)[0]),
        median_all=float(median_needed(charged)[0]),
    )
