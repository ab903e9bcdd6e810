"""The search for a weight, followed by hand."""

import torch

from pinprick.parts.weight_search import WeightSearch


def test_grows_until_one_works_then_halves_the_bracket() -> None:
    search = WeightSearch(torch.tensor([1.0, 1.0, 1.0]), growth=5.0)
    seen = []
    for worked in ([True, False, False], [True, False, True], [False, False, False]):
        search.learn(torch.tensor(worked))
        seen.append(search.weight.tolist())
    assert seen == [[0.5, 5.0, 5.0], [0.25, 25.0, 3.0], [0.375, 125.0, 4.0]]


def test_closes_in_on_the_smallest_weight_that_works() -> None:
    needed = torch.tensor([0.003, 0.7, 40.0], dtype=torch.float64)
    search = WeightSearch(torch.full_like(needed, 0.01), growth=10.0)
    for _ in range(60):
        search.learn(search.weight >= needed)
    torch.testing.assert_close(search.weight, needed)
