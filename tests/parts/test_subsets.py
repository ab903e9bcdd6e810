"""Draws without replacement against the probabilities of drawing one after another."""

import math
from itertools import permutations

import pytest
import torch
from torch import Tensor

from pinprick import Streams
from pinprick.attacks.brusle import draw_subset, draw_times

DRAWS = 20_000


def chances(weights: list[float], k: int) -> dict[int, float]:
    """Of each subset of k places, as a sum of powers of two, over all orders of drawing it."""
    chance: dict[int, float] = {}
    for order in permutations(range(len(weights)), k):
        product, left = 1.0, sum(weights)
        for place in order:
            product *= weights[place] / left
            left -= weights[place]
        code = sum(2**place for place in order)
        chance[code] = chance.get(code, 0.0) + product
    return chance


def chi_square(codes: Tensor, chance: dict[int, float]) -> float:
    counts = torch.bincount(codes, minlength=max(chance) + 1).double()
    assert counts[list(chance)].sum() == len(codes), "something was drawn that has no chance"
    expected = len(codes) * torch.tensor(list(chance.values()), dtype=torch.float64)
    return ((counts[list(chance)] - expected) ** 2 / expected).sum().item()


def codes(chosen: Tensor) -> Tensor:
    return (chosen * 2 ** torch.arange(chosen.shape[1])).sum(dim=1)


@pytest.mark.parametrize(
    ("k", "most"),
    [(1, 18.5), (2, 27.9), (3, 27.9)],  # 99.9 % at 4, 9 and 9 degrees of freedom
)
def test_subsets_are_as_likely_as_their_weights_make_them(k: int, most: float) -> None:
    weights = [0.01, 1.0, 2.0, 0.5, 4.0]
    times = draw_times(Streams(0, torch.arange(DRAWS)), 5, step=0, use="test")
    rows = torch.tensor(weights).expand(DRAWS, 5)
    chosen = draw_subset(rows, times, torch.full((DRAWS,), k), k)
    assert (chosen.sum(dim=1) == k).all()
    assert chi_square(codes(chosen), chances(weights, k)) < most


def test_disjoint_places_are_drawn_from_independently_by_the_same_times() -> None:
    times = draw_times(Streams(1, torch.arange(DRAWS)), 6, step=0, use="test")
    first = torch.tensor([1.0, 2.0, 3.0, 0.0, 0.0, 0.0]).expand(DRAWS, 6)
    second = torch.tensor([0.0, 0.0, 0.0, 3.0, 1.0, 1.0]).expand(DRAWS, 6)
    one = torch.ones(DRAWS, dtype=torch.long)
    chosen = draw_subset(first, times, one, 1) | draw_subset(second, times, one, 1)
    chance = {
        2**i + 2**j: p / 6 * q / 5
        for i, p in enumerate((1, 2, 3))
        for j, q in zip((3, 4, 5), (3, 1, 1), strict=True)
    }
    assert chi_square(codes(chosen), chance) < 26.1  # eight degrees of freedom, 99.9 %


def test_what_has_no_weight_is_never_drawn_and_counts_are_kept() -> None:
    weights = torch.tensor([[0.0, 1e-6, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    times = draw_times(Streams(0, torch.arange(3)), 4, step=3, use="test")
    chosen = draw_subset(weights, times, torch.tensor([3, 2, 1]), 3)
    assert chosen[0].tolist() == [False, True, False, True]
    assert chosen.sum(dim=1).tolist() == [2, 2, 0]


class Constant(Streams):
    """Gives the same number always."""

    def __init__(self, number: float) -> None:
        super().__init__(0, torch.arange(1))
        self.number = number

    def uniform(self, *shape: int, step: int | Tensor, use: str) -> Tensor:
        return torch.full((1, *shape), self.number)


@pytest.mark.parametrize(
    ("number", "time"),
    [(0.0, 2**-25), (2**-24, 2**-24), (0.5, math.log(2)), (1 - 2**-24, 24 * math.log(2))],
)
def test_an_arrival_time_is_minus_the_log_of_what_is_left(number: float, time: float) -> None:
    """Zero becomes half a step of the random numbers."""
    times = draw_times(Constant(number), 2, step=0, use="test")
    assert times.flatten().tolist() == pytest.approx([time, time])


def test_arrival_times_are_exponential_and_never_zero() -> None:
    times = draw_times(Streams(0, torch.arange(400)), 5000, step=0, use="test")
    assert times.isfinite().all()
    assert (times > 0).all()
    bins = ((1 - (-times.double()).exp()) * 50).long().clamp(max=49).flatten()
    even = dict.fromkeys(range(50), 1 / 50)
    assert chi_square(bins, even) < 85.4  # 49 degrees of freedom, 99.9 %
