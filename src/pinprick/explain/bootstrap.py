"""Shares and means over images, with intervals from drawing the images again.

Groups of one image go together, so images are what is drawn, with replacement, and the interval
holds the middle 95 % of what comes out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_AT_ONCE = 2**22  # drawn numbers that are held at a time


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number over images with its interval.

    Attributes:
        value: The number; NaN if there were no images.
        low, high: The interval.
        images: How many images it is over.
    """

    value: float
    low: float
    high: float
    images: int


class Bootstrap:
    """Draws images again, so many times, the same ones for the same seed."""

    def __init__(self, draws: int = 2000, seed: int = 0) -> None:
        self.draws, self.seed = draws, seed

    def ratio(self, parts: Sequence[float], wholes: Sequence[float]) -> Estimate:
        """The sum of ``parts`` over the sum of ``wholes``, where each image has one of both."""
        part, whole = (torch.tensor(list(x), dtype=torch.double) for x in (parts, wholes))
        if not whole.sum():
            return Estimate(value=torch.nan, low=torch.nan, high=torch.nan, images=len(whole))
        ratios = torch.cat([part[rows].sum(1) / whole[rows].sum(1) for rows in self._rows(part)])
        return self._estimate(float(part.sum() / whole.sum()), ratios, len(whole))

    def mean(self, values: Sequence[float]) -> Estimate:
        """The mean over images."""
        return self.ratio(values, [1.0] * len(values))

    def median(self, values: Sequence[float]) -> Estimate:
        """The median over images."""
        numbers = torch.tensor(list(values), dtype=torch.double)
        if not len(numbers):
            return Estimate(value=torch.nan, low=torch.nan, high=torch.nan, images=0)
        medians = torch.cat([numbers[rows].quantile(0.5, dim=1) for rows in self._rows(numbers)])
        return self._estimate(float(numbers.quantile(0.5)), medians, len(numbers))

    def _rows(self, values: Tensor) -> Iterable[Tensor]:
        generator = torch.Generator().manual_seed(self.seed)
        rows = torch.randint(len(values), (self.draws, len(values)), generator=generator)
        yield from rows.split(max(1, _AT_ONCE // len(values)))

    def _estimate(self, value: float, drawn: Tensor, images: int) -> Estimate:
        drawn = drawn[drawn.isfinite()]  # a draw may hold no group at all
        low, high = drawn.quantile(drawn.new_tensor([0.025, 0.975])).tolist()
        return Estimate(value=value, low=low, high=high, images=images)
