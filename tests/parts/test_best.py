"""The best so far: met, and cheaper than what was there."""

import torch

from pinprick.parts.best import Best


def test_keeps_the_cheapest_that_met_the_goal() -> None:
    best = Best(torch.zeros(3, 1, 1, 1))
    offers = [
        (0.25, [5.0, 5.0, 5.0], [True, True, False]),
        (0.5, [3.0, 7.0, 1.0], [True, True, False]),
        (0.75, [1.0, 1.0, 1.0], [False, False, False]),
    ]
    for value, cost, met in offers:
        best.offer(torch.full((3, 1, 1, 1), value), torch.tensor(cost), torch.tensor(met))
    assert best.images.flatten().tolist() == [0.5, 0.25, 0.0]
    assert best.cost.tolist() == [3.0, 5.0, torch.inf]


def test_of_two_that_cost_the_same_the_first_stays() -> None:
    best = Best(torch.zeros(1, 1, 1, 1))
    for value in (0.25, 0.5):
        best.offer(torch.full((1, 1, 1, 1), value), torch.tensor([2.0]), torch.tensor([True]))
    assert best.images.item() == 0.25


def test_takes_offers_for_some_of_the_images() -> None:
    best = Best(torch.zeros(3, 1, 1, 1))
    for value, cost in ((0.25, [5.0, 5.0]), (0.5, [7.0, 3.0])):
        candidates = torch.full((2, 1, 1, 1), value)
        met = torch.tensor([True, True])
        best.offer(candidates, torch.tensor(cost), met, rows=torch.tensor([2, 0]))
    assert best.images.flatten().tolist() == [0.5, 0.0, 0.25]
    assert best.cost.tolist() == [3.0, torch.inf, 5.0]


def test_counts_are_exact_whatever_the_precision_of_the_images() -> None:
    best = Best(torch.zeros(2, 1, 1, 1, dtype=torch.float16))
    met = torch.tensor([True])
    for count in (100_001.0, 100_000.0):  # more than half precision holds
        value = torch.full((1, 1, 1, 1), 0.5, dtype=torch.float16)
        best.offer(value, torch.tensor([count]), met, rows=torch.tensor([1]))
    assert best.cost.tolist() == [torch.inf, 100_000.0]
    assert best.images.dtype == torch.float16
