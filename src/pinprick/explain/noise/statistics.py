"""Statistics over images: intervals by bootstrap, association of two labels by permutation.

The groups of one image are not independent. So the bootstrap resamples images with replacement; its
interval holds the middle 95 % of the results. The permutation test shuffles the second label among
the groups of each image; p is the share of shuffles, the true order included, with a chi-squared at
least as large.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

_INDICES_AT_ONCE = 2**22  # resampled indices in memory
_SHUFFLES_AT_ONCE = 256

Indices = Int[Tensor, " group"]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number over images with its 95 % interval.

    Attributes:
        value: The number; NaN without images.
        low, high: The interval.
        images: Number of images.
    """

    value: float
    low: float
    high: float
    images: int


class Bootstrap:
    """Resamples images ``draws`` times; the same seed gives the same samples."""

    def __init__(self, draws: int = 2000, seed: int = 0) -> None:
        self.draws, self.seed = draws, seed

    def ratio(self, parts: Sequence[float], wholes: Sequence[float]) -> Estimate:
        """The sum of ``parts`` over the sum of ``wholes``, one of both per image."""
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
        yield from rows.split(max(1, _INDICES_AT_ONCE // len(values)))

    def _estimate(self, value: float, drawn: Tensor, images: int) -> Estimate:
        drawn = drawn[drawn.isfinite()]  # a sample may hold no group
        low, high = drawn.quantile(drawn.new_tensor([0.025, 0.975])).tolist()
        return Estimate(value=value, low=low, high=high, images=images)


@dataclass(frozen=True, kw_only=True)
class Association:
    """The contingency table of two labels per group.

    Attributes:
        rows, columns: The names of the two labels.
        counts: Number of groups with both labels.
        chi_squared: Chi-squared of the table, without its empty rows and columns.
        cramers_v: Cramér's V: 0 if the labels are independent, 1 if one determines the other. NaN
            if all groups are in one row or one column.
        p: p of the permutation test; NaN likewise.
        groups: Number of groups.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    chi_squared: float
    cramers_v: float
    p: float
    groups: int


def associate(
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    images: Indices,
    first: Indices,
    second: Indices,
    *,
    shuffles: int = 2000,
    seed: int = 0,
) -> Association:
    """The contingency table of two labels, and their association.

    Args:
        rows: Names of the first label.
        columns: Names of the second label.
        images: The image of each group, in rising order.
        first: The first label of each group, as an index into ``rows``.
        second: The second label of each group, as an index into ``columns``.
        shuffles: Number of shuffles.
        seed: Seed of the shuffles.
    """
    shape = (len(rows), len(columns))
    counts = _tables(first, second.unsqueeze(0), shape)[0]
    full = (counts.sum(dim=1) > 0).sum(), (counts.sum(dim=0) > 0).sum()
    chi_squared = v = p = float("nan")
    if min(full) > 1:
        chi_squared = float(_chi_squared(counts.unsqueeze(0)))
        v = (chi_squared / (len(first) * (int(min(full)) - 1))) ** 0.5
        generator, reached = torch.Generator().manual_seed(seed), 1
        for start in range(0, shuffles, _SHUFFLES_AT_ONCE):
            times = min(_SHUFFLES_AT_ONCE, shuffles - start)
            keys = images + torch.rand(times, len(images), generator=generator, dtype=torch.double)
            shuffled = second[keys.argsort(dim=1, stable=True)]  # each image by itself
            drawn = _chi_squared(_tables(first, shuffled, shape))
            reached += int((drawn >= chi_squared - 1e-9).sum())
        p = reached / (shuffles + 1)
    return Association(
        rows=rows,
        columns=columns,
        counts=tuple(tuple(row) for row in counts.long().tolist()),
        chi_squared=chi_squared,
        cramers_v=v,
        p=p,
        groups=len(first),
    )


def _tables(
    first: Indices, seconds: Int[Tensor, "times group"], shape: tuple[int, int]
) -> Float[Tensor, "times row column"]:
    """One table per row of ``seconds``."""
    cells = first * shape[1] + seconds
    tables = torch.zeros(len(seconds), shape[0] * shape[1], dtype=torch.double)
    tables.scatter_add_(1, cells, torch.ones_like(cells, dtype=torch.double))
    return tables.view(-1, *shape)


def _chi_squared(tables: Float[Tensor, "times row column"]) -> Float[Tensor, " times"]:
    across, down = tables.sum(dim=2, keepdim=True), tables.sum(dim=1, keepdim=True)
    expected = across * down / tables.sum(dim=(1, 2), keepdim=True)
    off = (tables - expected).square() / expected.clamp_min(1e-300)  # 0 where none is expected
    return off.sum(dim=(1, 2))
