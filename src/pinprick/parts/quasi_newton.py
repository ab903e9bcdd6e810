"""L-BFGS inside a box, for many functions at once, each with a state of its own.

Row ``i`` of every tensor belongs to function ``i``; the rows move in lock-step and share nothing.
A step follows Bertsekas's projected quasi-Newton method: values that stand at the edge of the box
and would leave it are held, the others move along

    d = -H g

with ``H`` from the last moves and changes of the gradient (Nocedal's two loops). The point is put
back into the box, and the move is taken if the function falls by a share of what ``g`` promised,
else it is tried again, shorter. Each try asks once for value and gradient, so the cost is known
beforehand; rows that have settled are not asked any more.

Points lie on a grid of 2^-22, far finer than 8-bit values: a network's last bit depends on how many
images it sees at a time, and rounding keeps that from growing into another search.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pinprick.types import Labels, Mask, PerImage

Points = Float[Tensor, "batch size"]
Ask = Callable[[Points, Labels], tuple[PerImage, Points]]

_PAIRS = 8  # moves that H remembers
_SHARE = 1e-4  # of the promised fall that must come true
_GRID = 2.0**-22  # or what the type of number can tell apart


def minimise_in_box(
    ask: Ask,
    start: Points,
    low: Points,
    high: Points,
    *,
    scale: PerImage,
    tries: int,
    tolerance: float = 1e-6,
) -> Points:
    """A point of low value for each row.

    Args:
        ask: Value and gradient at some points; it is told which rows they belong to.
        start: Where each row begins, inside the box.
        low: The lower edge of the box.
        high: The upper one.
        scale: A first guess at the inverse of the curvature: the first ``d`` is ``-scale * g``.
        tries: How often a row may ask, once for its start.
        tolerance: A row has settled when a move lowers its value by less than this share.
    """
    rows = torch.arange(len(start), device=start.device)  # not yet settled
    point, pairs = start, _Pairs(scale)
    value, grad = ask(start, rows)
    towards = _direction(pairs, point, grad, low, high)
    length = torch.ones_like(value)
    for _ in range(tries - 1):
        trial = _onto_grid(point + length.unsqueeze(1) * towards, low, high)
        promise = (grad * (trial - point)).sum(dim=1)
        rows = rows[promise[rows] < 0]  # a move too short for the grid promises nothing
        if not len(rows):
            break
        asked, asked_grad = ask(trial[rows], rows)
        new_value = torch.full_like(value, torch.inf).index_copy(0, rows, asked)
        new_grad = grad.index_copy(0, rows, asked_grad)
        taken = new_value <= value + _SHARE * promise
        settled = taken & (value - new_value <= tolerance * value.abs())
        short = (-promise / (2 * (new_value - value - promise))).nan_to_num(0.0).clamp(0.1, 0.5)
        length = torch.where(taken, 1, length * short)
        pairs.add(trial - point, new_grad - grad, taken)
        point = torch.where(taken.unsqueeze(1), trial, point)
        grad = torch.where(taken.unsqueeze(1), new_grad, grad)
        value = torch.where(taken, new_value, value)
        fresh = _direction(pairs, point, grad, low, high)
        towards = torch.where(taken.unsqueeze(1), fresh, towards)
        rows = rows[~settled[rows]]
    return point


def _onto_grid(point: Points, low: Points, high: Points) -> Points:
    """The point of the grid and the box nearby; the box's own edges count as points of the grid."""
    grid = max(_GRID, torch.finfo(point.dtype).eps / 4)
    point = (point / grid).round() * grid
    point = torch.where(point < low + grid, low, point)
    return torch.where(point > high - grid, high, point)


def _direction(pairs: "_Pairs", point: Points, grad: Points, low: Points, high: Points) -> Points:
    """The quasi-Newton step, or the plain downhill one where the box turns that uphill."""
    free = torch.where(grad > 0, point > low, point < high)
    grad = grad * free
    step, scale = pairs.times(grad, free)
    promise = (grad * ((point - step).clamp(low, high) - point)).sum(dim=1, keepdim=True)
    return -torch.where(promise < 0, step, scale.unsqueeze(1) * grad)


class _Pairs:
    """The last moves and gradient changes of each row; together they stand for the matrix ``H``."""

    def __init__(self, scale: PerImage) -> None:
        self._scale = scale
        self._pairs: list[tuple[Points, Points]] = []

    def add(self, move: Points, change: Points, taken: Mask) -> None:
        self._pairs = [*self._pairs, (move * taken.unsqueeze(1), change)][-_PAIRS:]

    def times(self, grad: Points, free: Bool[Tensor, "batch size"]) -> tuple[Points, PerImage]:
        """``H`` of the free values times ``grad``, and the multiple of one that ``H`` began as."""
        seen, scale = [], self._scale
        for move, change in self._pairs:
            move, change = move * free, change * free
            agreement, size = _dot(move, change), _dot(change, change)
            curved = agreement > 1e-10 * (_dot(move, move) * size).sqrt()  # else it says nothing
            scale = torch.where(curved, agreement / size, scale)
            seen.append((move, change, torch.where(curved, 1 / agreement, 0)))
        shares = []
        for move, change, weight in reversed(seen):
            shares.append(weight * _dot(move, grad))
            grad = grad - shares[-1].unsqueeze(1) * change
        grad = scale.unsqueeze(1) * grad
        for move, change, weight in seen:
            share = shares.pop() - weight * _dot(change, grad)
            grad = grad + share.unsqueeze(1) * move
        return grad, scale


def _dot(a: Points, b: Points) -> PerImage:
    return (a * b).sum(dim=1)
