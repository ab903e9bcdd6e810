"""Maps worked out by hand: both ways to normalise, the top area, and the flag of an empty one."""

import pytest
import torch

from pinprick import BadInput
from pinprick.explain.maps.maps import Attribution, Maps

VALUES = torch.tensor([[[0.0, 1.0], [3.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
MAPS = Maps(
    values=VALUES, coarse=VALUES, classes=torch.tensor([3, 5]), layer="conv", method="Grad-CAM"
)


def test_the_largest_value_is_scaled_to_one() -> None:
    assert MAPS.scaled.tolist() == [[[0.0, 0.25], [0.75, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]


def test_shares_add_up_to_one() -> None:
    assert MAPS.shares.tolist() == [[[0.0, 0.125], [0.375, 0.5]], [[0.0, 0.0], [0.0, 0.0]]]


def test_an_empty_map_is_flagged() -> None:
    assert MAPS.empty.tolist() == [False, True]
    assert len(MAPS) == 2


@pytest.mark.parametrize(("share", "count"), [(0.25, 1), (0.26, 2), (0.75, 3), (1.0, 3)])
def test_the_top_area_holds_the_largest_values_and_no_zeros(share: float, count: int) -> None:
    top = MAPS.top(share)
    assert top.flatten(1).sum(dim=1).tolist() == [count, 0]
    assert VALUES[top].sum() == sum([4.0, 3.0, 1.0][:count])


def test_of_equal_values_the_first_are_in_the_top_area() -> None:
    flat = torch.ones(1, 10, 10)
    maps = Maps(
        values=flat, coarse=flat, classes=torch.tensor([0]), layer="conv", method="Grad-CAM"
    )
    assert maps.top(0.3).flatten().tolist() == [True] * 30 + [False] * 70


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(BadInput, match="share must be above 0 and at most 1"):
        MAPS.top(share)


def test_an_attribution_adds_up_channels_and_may_cancel_out() -> None:
    values = torch.zeros(3, 2, 1, 1)
    values[0, :, 0, 0] = torch.tensor([2.0, -0.5])
    values[1, :, 0, 0] = torch.tensor([1.0, -1.0])
    found = Attribution(values=values, classes=torch.zeros(3, dtype=torch.long))
    assert found.per_pixel.flatten().tolist() == [1.5, 0.0, 0.0]
    assert found.empty.tolist() == [False, False, True]
