"""Projections: inside the ball, no nearer point there, and exactly so many elements."""

import pytest
import torch
from torch import Tensor

from pinprick.attacks.fmn import into_l0, into_l1, into_l2, into_linf, size
from pinprick.oracle import exact_images
from pinprick.parts.largest import mask_largest

INTO = {"l1": into_l1, "l2": into_l2, "linf": into_linf}


def some_changes() -> Tensor:
    return exact_images(5, (1, 3, 4)).flatten(1) * 2 - 1


def test_norms_are_those_of_torch() -> None:
    delta = some_changes()
    delta[0, :3] = 0
    for norm, order in (("l0", 0), ("l1", 1), ("l2", 2), ("linf", torch.inf)):
        torch.testing.assert_close(size(delta, norm), delta.norm(p=order, dim=1))  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", sorted(INTO))
def test_no_point_of_the_ball_is_nearer(norm: str) -> None:
    """The projection ``p`` of ``d`` has (d - p) * (z - p) <= 0 for every ``z`` of the ball."""
    delta = some_changes()
    radius = torch.tensor([0.0, 0.1, 0.5, 0.9, 1.0]) * size(delta, norm)  # type: ignore[arg-type]
    nearest = INTO[norm](delta, radius)
    torch.testing.assert_close(size(nearest, norm), radius)  # type: ignore[arg-type]
    corners = torch.eye(12).double() if norm == "l1" else torch.cat((some_changes(), delta.sign()))
    for corner in torch.cat((corners, -corners)):
        inside = INTO[norm](corner.expand_as(delta), radius)
        assert ((delta - nearest) * (inside - nearest)).sum(dim=1).max() <= 1e-12


@pytest.mark.parametrize("norm", sorted(INTO))
def test_what_is_inside_stays_where_it_is(norm: str) -> None:
    delta = some_changes()
    for radius in (size(delta, norm) * 1.0001, torch.full((5,), torch.inf).double()):  # type: ignore[arg-type]
        assert torch.equal(INTO[norm](delta, radius), delta)


def test_shrinks_by_the_same_amount_in_l1() -> None:
    delta = torch.tensor([[3.0, -2.0, 0.5]])
    assert into_l1(delta, torch.tensor([3.0])).tolist() == [[2.0, -1.0, 0.0]]


@pytest.mark.parametrize("values", [[0.5, -3.0, 2.0, 0.0, 0.25], [2.0, -2.0, 0.0, 2.0, 1.0]])
def test_keeps_the_largest_entries_and_of_equal_ones_the_first(values: list[float]) -> None:
    delta, count = torch.tensor([values]).expand(7, 5), torch.arange(7)
    chosen = mask_largest(delta.abs(), count, most=6)
    for most in (6, 9):
        assert torch.equal(into_l0(delta, count, most), torch.where(chosen, delta, 0))
    one_by_one = torch.cat([into_l0(delta[:1], count[i : i + 1], most=i) for i in range(7)])
    assert torch.equal(one_by_one, torch.where(chosen, delta, 0))
