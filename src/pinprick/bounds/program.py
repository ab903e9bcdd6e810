"""Integer programs over the images that change few units: the fewest units, the widest margin.

    min sum(z)      z_u = 1 where unit u changes
    low_i z_u <= d_i <= high_i z_u          the change d of each element i of u
    y = max(0, p)                           per ReLU, p affine in the variables before it
    function_r(image + d) >= -slack         per function r, such as logit_j - logit_label
    sum(z) <= budget

A ReLU whose bounds [l, u] lie on both sides of zero takes a binary a and three rows:

    y >= p      y <= p - l (1 - a)      y <= u a

All other ReLUs are the identity or zero. Rows of a ReLU are divided by the size of its bounds, so
that the solver's tolerance is a share of the same size for each of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pinprick.bounds.linear_bounds import Ball, Range
from pinprick.bounds.read_network import AffineMap, Flags, Floats, Indices, ReluNetwork
from pinprick.errors import MissingExtra

TOLERANCE = 1e-6  # by which HiGHS may miss a row or a whole number
_WHOLE = 1e-3  # a lower bound on a whole number is rounded up where it exceeds one by this


@dataclass(frozen=True)
class Solved:
    """The outcome of a program.

    Attributes:
        change: The change of each element; None where none was found.
        bound: Lower bound on the number of units; infinite where the program has no solution.
        finished: Whether the bound is the optimum.
    """

    change: Floats | None
    bound: float
    finished: bool


def tolerance_effect(
    network: ReluNetwork, ball: Ball, ranges: Sequence[Range], last: AffineMap
) -> float:
    """Most that a function changes where every row is missed by the tolerance."""
    reach = np.abs(last.weight)
    total = np.zeros(len(reach))
    for each, bounds in reversed(list(zip(network.maps[:-1], ranges, strict=True))):
        size = np.maximum(-bounds.low, bounds.high)
        rows = bounds.unstable
        total += 2 * reach[:, rows] @ size[rows]
        reach = (reach * (bounds.high > 0)) @ np.abs(each.weight)
    total += reach @ (ball.high - ball.low)
    return float(TOLERANCE * total.max())


def fewest_units(
    network: ReluNetwork,
    ball: Ball,
    ranges: Sequence[Range],
    functions: AffineMap,
    *,
    least: int,
    slack: float,
    seconds: float,
) -> Solved:
    """The fewest units of the ball with which every function is at least ``-slack``.

    Args:
        network: The network.
        ball: The images.
        ranges: Bounds of its hidden values over the ball.
        functions: Affine functions of the last hidden layer.
        least: A number of units that is known to be needed.
        slack: By how much a function may stay below zero.
        seconds: Time limit.
    """
    rows = _Rows(network, ball, ranges)
    units = np.unique(rows.elements % ball.units)
    switch = rows.add_columns(len(units), 0.0, 1.0, whole=True)
    column = dict(zip(units.tolist(), switch.tolist(), strict=True))
    owner = np.array([column[unit] for unit in (rows.elements % ball.units).tolist()], dtype=int)
    for end, sign in ((ball.high, 1.0), (ball.low, -1.0)):
        reach = sign * end[rows.elements]
        for change, own, most in zip(rows.changes, owner, reach, strict=True):
            if most > 0:  # elsewhere the bound of the change says it
                rows.add_row({int(change): sign, int(own): -float(most)}, high=0.0)
    rows.add_row(dict.fromkeys(switch.tolist(), 1.0), low=float(least), high=float(ball.budget))
    rows.add_functions(functions, -slack)
    cost = np.zeros(rows.width)
    cost[switch] = 1.0
    found = rows.solve(cost, seconds)
    bound = _round_up(found.mip_dual_bound)
    if found.status == 2:
        return Solved(None, np.inf, True)
    change = None if found.x is None else rows.read_change(found.x, found.x[owner] > 0.5)
    if found.status == 0:
        return Solved(change, float(round(found.fun)), True)
    return Solved(change, max(bound, float(least)), False)


def widest_margin(
    network: ReluNetwork,
    ball: Ball,
    ranges: Sequence[Range],
    functions: AffineMap,
    *,
    seconds: float,
) -> Floats | None:
    """The change, of any number of units, with the largest minimum of the functions.

    None where the time was too short to find any.
    """
    rows = _Rows(network, ball, ranges)
    margin = rows.add_columns(1, -np.inf, np.inf)
    rows.add_functions(functions, 0.0, less=int(margin[0]))
    cost = np.zeros(rows.width)
    cost[margin] = -1.0
    found = rows.solve(cost, seconds)
    return None if found.x is None else rows.read_change(found.x, np.ones(len(rows.changes), bool))


def _round_up(bound: float | None) -> float:
    """A lower bound on a whole number, rounded up with care for the solver's own rounding."""
    return -np.inf if bound is None or not np.isfinite(bound) else float(np.ceil(bound - _WHOLE))


class _Rows:
    """The columns and rows of a program; the changes and the ReLUs are there from the start."""

    def __init__(self, network: ReluNetwork, ball: Ball, ranges: Sequence[Range]) -> None:
        self.ball = ball
        self.elements: Indices = ball.free
        self.width = 0
        self._low: list[Floats] = []
        self._high: list[Floats] = []
        self._whole: list[Floats] = []
        self._cells: list[tuple[Indices, Floats]] = []
        self._row_low: list[float] = []
        self._row_high: list[float] = []
        self.changes = self.add_columns(
            len(self.elements), ball.low[self.elements], ball.high[self.elements]
        )
        weight, bias = np.zeros((len(ball.image), self.width)), ball.image
        weight[self.elements, self.changes] = 1.0
        for each, bounds in zip(network.maps[:-1], ranges, strict=True):
            weight, bias = self._add_relus(
                each.weight @ weight, each.weight @ bias + each.bias, bounds
            )
        self._hidden = weight, bias

    def add_columns(
        self, count: int, low: Floats | float, high: Floats | float, *, whole: bool = False
    ) -> Indices:
        """New variables between two bounds."""
        start, self.width = self.width, self.width + count
        self._low.append(np.broadcast_to(np.asarray(low, float), count))
        self._high.append(np.broadcast_to(np.asarray(high, float), count))
        self._whole.append(np.full(count, float(whole)))
        return np.arange(start, self.width)

    def add_row(
        self, cells: dict[int, float], *, low: float = -np.inf, high: float = np.inf
    ) -> None:
        """A row ``low <= sum of cells <= high``, by column."""
        self._add(np.array(list(cells), int), np.array(list(cells.values())), low, high)

    def add_functions(self, functions: AffineMap, low: float, *, less: int | None = None) -> None:
        """A row ``function - column >= low`` per function; the column is ``less``, if given."""
        weight, bias = self._hidden
        weight, bias = functions.weight @ weight, functions.weight @ bias + functions.bias
        for one, start in zip(weight, bias, strict=True):
            columns = np.flatnonzero(one)
            values = one[columns]
            if less is not None:
                columns, values = np.append(columns, less), np.append(values, -1.0)
            self._add(columns, values, low - float(start), np.inf)

    def solve(self, cost: Floats, seconds: float) -> Any:
        """What HiGHS answers."""
        try:
            from scipy.optimize import Bounds, LinearConstraint, milp
            from scipy.sparse import csr_array
        except ImportError:
            raise MissingExtra("a proof", "scipy", "bounds") from None
        starts = np.cumsum([0, *(len(columns) for columns, _ in self._cells)])
        columns = np.concatenate([columns for columns, _ in self._cells])
        values = np.concatenate([values for _, values in self._cells])
        matrix = csr_array((values, columns, starts), shape=(len(self._cells), self.width))
        return milp(
            cost,
            integrality=np.concatenate(self._whole),
            bounds=Bounds(np.concatenate(self._low), np.concatenate(self._high)),
            constraints=LinearConstraint(matrix, self._row_low, self._row_high),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )

    def read_change(self, solution: Floats, on: Flags) -> Floats:
        """The change of each element of the image; zero where ``on`` is False."""
        change = np.zeros(len(self.ball.image))
        change[self.elements] = np.where(on, solution[self.changes], 0.0)
        inside: Floats = np.clip(change, self.ball.low, self.ball.high)
        return inside

    def _add(self, columns: Indices, values: Floats, low: float, high: float) -> None:
        self._cells.append((columns, values))
        self._row_low.append(low)
        self._row_high.append(high)

    def _add_relus(self, weight: Floats, bias: Floats, bounds: Range) -> tuple[Floats, Floats]:
        """The values after a layer of ReLUs, as affine functions of the columns."""
        unstable = bounds.unstable
        size = np.maximum(-bounds.low, bounds.high)
        after = self.add_columns(len(unstable), 0.0, 1.0)  # as a share of the upper bound
        switch = self.add_columns(len(unstable), 0.0, 1.0, whole=True)
        on = (bounds.low >= 0) & (bounds.high > 0)
        out = np.zeros((len(weight), self.width))
        out[on, : weight.shape[1]] = weight[on]
        offset = np.where(on, bias, 0.0)
        for row, own, step in zip(unstable, after, switch, strict=True):
            low, high, by = bounds.low[row], bounds.high[row], size[row]
            before = np.flatnonzero(weight[row])
            values = -weight[row, before] / by
            start = float(bias[row]) / by
            columns = np.append(before, own)
            self._add(columns, np.append(values, high / by), start, np.inf)
            columns, values = np.append(columns, step), np.append(values, (high / by, -low / by))
            self._add(columns, values, -np.inf, start - low / by)
            self._add(np.array([own, step]), np.array([1.0, -1.0]), -np.inf, 0.0)
            out[row, own] = high
        return out, offset
