"""Fooling rates over correct images and over all images, at any number of changed units.

``needed`` has one number per image: 0 where the clean image counts as an error, infinite where
the attack failed.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pinprick.metrics.needed import Numbers


class Share(NamedTuple):
    """So many images of so many."""

    number: int
    images: int

    @property
    def rate(self) -> float:
        """NaN where there are no images."""
        return self.number / self.images if self.images else math.nan


def fooled_of_correct(
    needed: Numbers, correct: NDArray[np.bool_], budget: float = math.inf
) -> Share:
    """Fooled images of those classified correctly before the attack: the fooling rate.

    Args:
        needed: Units per image.
        correct: Which clean images are classified correctly.
        budget: Images that need more units than that count as failures.
    """
    return Share(_fooled(needed[correct], budget), int(correct.sum()))


def fooled_of_all(needed: Numbers, budget: float = math.inf) -> Share:
    """Images of all that meet the goal, clean errors included: one minus robust accuracy."""
    return Share(_fooled(needed, budget), len(needed))


def _fooled(needed: Numbers, budget: float) -> int:
    return int((np.isfinite(needed) & (needed <= budget)).sum())
