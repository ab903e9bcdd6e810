"""The largest of each row, against a stable sort."""

import pytest
import torch
from torch import Tensor

from pinprick import Streams
from pinprick.parts import largest
from pinprick.parts.largest import find_largest, mask_largest

K = 252  # at which two keys of one image are tied


class NotOnACpu(Tensor):
    """Goes the way of other devices, which looks at no value."""

    is_cpu = False


def elsewhere(values: Tensor) -> Tensor:
    return values.as_subclass(NotOnACpu)


def sort(scores: Tensor) -> Tensor:
    return scores.argsort(dim=-1, descending=True, stable=True)


def some_scores(levels: int, shape: tuple[int, ...] = (40, 60)) -> Tensor:
    generator = torch.Generator().manual_seed(levels)
    return torch.randint(-levels // 2, levels, shape, generator=generator).float()


@pytest.mark.parametrize("levels", [2, 5, 20, 10**6])
@pytest.mark.parametrize("device", ["cpu", "another"])
@pytest.mark.parametrize("above", [0.0, -torch.inf])
def test_chooses_what_a_stable_sort_puts_first(levels: int, device: str, above: float) -> None:
    scores, count = some_scores(levels), torch.arange(40)
    order = sort(scores)
    rank = order.argsort(dim=1)
    expected = (rank < count.unsqueeze(1)) & (scores > above)
    given = scores if device == "cpu" else elsewhere(scores)
    for most in (39, 40, 59, 60, 70):
        assert torch.equal(mask_largest(given, count, most, above=above), expected)
        places, chosen = find_largest(given, count, most, above=above)
        assert chosen.sum(dim=1).tolist() == expected.sum(dim=1).tolist()
        assert torch.equal(places[chosen], order[:, : places.shape[1]][chosen])
        assert all(len(set(row)) == min(most, 60) for row in places.tolist())


def test_an_odd_count_is_taken_as_far_as_it_goes() -> None:
    scores = torch.tensor([[1.0, 3.0, 2.0, 5.0]]).expand(6, 4)
    count = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0, 9.0])
    for given in (scores, elsewhere(scores)):
        chosen = mask_largest(given, count, 9)
        assert chosen.sum(dim=1).tolist() == [0, 1, 2, 3, 4, 4]
        assert chosen[2].tolist() == [False, True, False, True]
        assert mask_largest(given, count, 2).sum(dim=1).tolist() == [0, 1, 2, 2, 2, 2]
    assert not mask_largest(scores, torch.zeros(6), 0).any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.uint8])
def test_takes_numbers_of_any_kind(dtype: torch.dtype) -> None:
    scores = torch.tensor([[0, 2, 1, 2, 1, 1]]).to(dtype)
    for given in (scores, elsewhere(scores)):
        assert mask_largest(given, torch.tensor([4]), 5).tolist() == [[0, 1, 1, 1, 1, 0]]
        places, chosen = find_largest(given, torch.tensor([4]), 5)
        assert places[chosen].tolist() == [1, 3, 2, 4]


def test_zeros_of_either_sign_are_equal() -> None:
    scores = torch.tensor([[-0.0, 0.0, -1.0, -0.0, 2.0]])
    for given in (scores, elsewhere(scores)):
        chosen = mask_largest(given, torch.tensor([3]), 3, above=-torch.inf)
        assert chosen.tolist() == [[True, True, False, False, True]]


def test_rows_may_have_more_than_one_dimension() -> None:
    scores, count = some_scores(5, (4, 3, 20)), torch.arange(12).view(4, 3)
    flat = mask_largest(scores.flatten(0, 1), count.flatten(), 11).view_as(scores)
    assert torch.equal(mask_largest(scores, count, 11), flat)
    places, chosen = find_largest(scores, count, 11)
    assert torch.equal(torch.zeros_like(flat).scatter(2, places, chosen), flat)


@pytest.mark.parametrize("device", ["cpu", "another"])
def test_one_count_may_be_for_several_rows(device: str) -> None:
    scores, count = some_scores(5, (4, 3, 20)), torch.tensor([[0], [3], [9], [11]])
    given = scores if device == "cpu" else elsewhere(scores)
    each = count.expand(4, 3)
    assert torch.equal(mask_largest(given, count, 11), mask_largest(scores, each, 11))
    places, chosen = find_largest(given, count, 11)
    expected, right = find_largest(scores, each, 11)
    assert torch.equal(chosen, right)
    assert torch.equal(places[chosen], expected[right])


def test_no_infinity_is_chosen_and_none_is_in_the_way() -> None:
    scores = torch.tensor([[-torch.inf, 0.0, torch.inf, -torch.inf, torch.inf]])
    for given in (scores, elsewhere(scores)):
        chosen = mask_largest(given, torch.tensor([5]), 5, above=-torch.inf)
        assert chosen.tolist() == [[False, True, True, False, True]]
        assert mask_largest(given, torch.tensor([1]), 5).tolist() == [[0, 0, 1, 0, 0]]


def test_keys_of_a_large_image_are_tied_and_the_first_is_taken_in_any_company() -> None:
    """Two of the 50,176 keys of 24 bits of one image are equal, where the last is chosen."""
    keys = Streams(0, torch.arange(1)).uniform(224 * 224, step=1, use="a tie")
    values, order = keys.sort(dim=1, descending=True, stable=True)
    assert values[0, K - 1] == values[0, K]
    count = torch.tensor([K])
    for most in (K, K + 1, 2 * K, 1000):
        places, chosen = find_largest(keys, count, most)
        assert torch.equal(places[chosen], order[0, :K])
        assert mask_largest(keys, count, most)[0, order[0, K - 1]]
        assert not mask_largest(keys, count, most)[0, order[0, K]]


def test_rows_without_a_tie_are_not_counted_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a processor that would take as long as the choice itself."""
    counted = []
    first_equal = largest._first_equal

    def note(scores: Tensor, *rest: Tensor) -> Tensor:
        counted.append(scores.tolist())
        return first_equal(scores, *rest)

    monkeypatch.setattr(largest, "_first_equal", note)
    scores = torch.tensor([[3.0, 1.0, 2.0], [1.0, 2.0, 1.0], [0.0, 0.0, 2.0], [1.0, 1.0, 2.0]])
    mask_largest(scores, torch.tensor([2, 2, 2, 0]), 2)
    assert counted == [[[1.0, 2.0, 1.0]]]
