"""The best pair of features among D, exactly, and in memory linear in D.

With gains ``a`` and ``c`` of each feature, the best pair has the largest

    (a_p + a_q) * (c_p + c_q),      both sums above zero.

Putting in place of p a feature whose gains are no smaller never makes this smaller. A feature that
is outside the first two Pareto layers has two such features above it, one of which is not q. So the
best pair lies within these two layers, which hold some dozens of features out of thousands.
"""

import torch
from torch import Tensor

from pinprick.parts.largest import find_largest

_CHUNK = 128  # features that are paired with all others at a time


def best_pair(a: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The places of the best pair in each row, (batch, 2), and its worth; minus infinity if none.

    Features whose gains are minus infinity take no part.
    """
    places, there = two_layers(a, c)
    a = a.gather(1, places).masked_fill(~there, -torch.inf)
    c = c.gather(1, places).masked_fill(~there, -torch.inf)
    number = torch.arange(places.shape[1], device=a.device)
    best = torch.full_like(a[:, 0], -torch.inf)
    pair = places.new_zeros((len(a), 2))
    for start in range(0, places.shape[1], _CHUNK):
        first = number[start : start + _CHUNK]
        rise = a[:, first].unsqueeze(2) + a.unsqueeze(1)
        fall = c[:, first].unsqueeze(2) + c.unsqueeze(1)
        fits = (rise > 0) & (fall > 0) & (first.unsqueeze(1) < number)
        worth = (rise * fall).masked_fill(~fits, -torch.inf).flatten(1)
        most, at = worth.max(dim=1)
        found = torch.stack((at // len(number) + start, at % len(number)), dim=1)
        better = most > best
        best = torch.where(better, most, best)
        pair = torch.where(better.unsqueeze(1), found, pair)
    return places.gather(1, pair), best


def two_layers(a: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The features of the first two Pareto layers of each row, and which of them are there."""
    order = c.argsort(dim=1, descending=True, stable=True)
    order = order.gather(1, a.gather(1, order).argsort(dim=1, descending=True, stable=True))
    gain = c.gather(1, order)  # by a, of equal ones by c, so what is above comes before
    first = _rises(gain)
    second = _rises(gain.masked_fill(first, -torch.inf))
    layers = first | second
    count = layers.sum(dim=1)
    at, there = find_largest(layers.byte(), count, int(count.max()))
    return order.gather(1, at), there


def _rises(values: Tensor) -> Tensor:
    """Where a value is above all those before it."""
    before = values.cummax(dim=1).values.roll(1, dims=1)
    before[:, 0] = -torch.inf
    return values > before
