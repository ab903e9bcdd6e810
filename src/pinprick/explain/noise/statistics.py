"""How closely what groups do goes with where they lie.

The table counts groups by their label and their place. Cramér's V is 0 where the two have nothing
to do with one another and 1 where one tells the other. Groups of one image are no independent
draws, so p comes from shuffling the places among the groups of each image: it is the share of
shuffles, the true one among them, with a chi-squared at least as large.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

_SHUFFLES_AT_ONCE = 256

Numbers = Int[Tensor, " group"]


@dataclass(frozen=True, kw_only=True)
class Association:
    """A table of two labels of each group.

    Attributes:
        rows, columns: Their names.
        counts: How many groups have both.
        chi_squared: Of the table, without its empty rows and columns.
        cramers_v: See above; NaN where all groups are in one row or one column.
        p: See above; NaN likewise.
        groups: How many groups there are.
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
    images: Numbers,
    first: Numbers,
    second: Numbers,
    *,
    shuffles: int = 2000,
    seed: int = 0,
) -> Association:
    """The table of two labels, and how closely they go together.

    Args:
        rows: Names of the first label.
        columns: Names of the second.
        images: The image that each group is of, in rising order.
        first: Numbers of its first label.
        second: Numbers of its second.
        shuffles: How often places are shuffled.
        seed: Of the shuffles.
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
            shuffled = second[
                keys.argsort(dim=1, stable=True)
            ]  # an image's groups keep to its own places
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
    first: Numbers, seconds: Int[Tensor, "times group"], shape: tuple[int, int]
) -> Float[Tensor, "times row column"]:
    """One table for each of several second labels."""
    cells = first * shape[1] + seconds
    tables = torch.zeros(len(seconds), shape[0] * shape[1], dtype=torch.double)
    tables.scatter_add_(1, cells, torch.ones_like(cells, dtype=torch.double))
    return tables.view(-1, *shape)


def _chi_squared(tables: Float[Tensor, "times row column"]) -> Float[Tensor, " times"]:
    across, down = tables.sum(dim=2, keepdim=True), tables.sum(dim=1, keepdim=True)
    expected = across * down / tables.sum(dim=(1, 2), keepdim=True)
    off = (tables - expected).square() / expected.clamp_min(1e-300)  # 0 where none is expected
    return off.sum(dim=(1, 2))


# Shares and means over images, with intervals from drawing the images again.
#
# Groups of one image go together, so images are what is drawn, with replacement, and the interval
# holds the middle 95 % of what comes out.


_DRAWS_AT_ONCE = 2**22  # drawn numbers that are held at a time


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
        yield from rows.split(max(1, _DRAWS_AT_ONCE // len(values)))

    def _estimate(self, value: float, drawn: Tensor, images: int) -> Estimate:
        drawn = drawn[drawn.isfinite()]  # a draw may hold no group at all
        low, high = drawn.quantile(drawn.new_tensor([0.025, 0.975])).tolist()
        return Estimate(value=value, low=low, high=high, images=images)
