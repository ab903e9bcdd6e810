"""A number with its uncertainty."""

import math
from dataclasses import dataclass
from typing import NamedTuple

LEVEL = 0.95  # of every interval


class Interval(NamedTuple):
    """Two bounds; NaN where there are too few images for an interval."""

    low: float
    high: float


UNDEFINED = Interval(math.nan, math.nan)


@dataclass(frozen=True)
class Estimate:
    """A number, its interval over images, and its deviation over seeds.

    Attributes:
        value: The mean over seeds, or the number itself where there is one seed.
        low, high: The 95 % interval over images; NaN with fewer than two images.
        deviation: Standard deviation over seeds; NaN with fewer than two seeds.
    """

    value: float
    low: float
    high: float
    deviation: float
