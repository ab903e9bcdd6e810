"""L-BFGS in a box: quadratics with a known minimum, and a valley that is hard to follow."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pinprick.attacks.lbfgs import Ask, minimise_in_box


def quadratic(matrix: Tensor, centre: Tensor) -> Ask:
    def ask(points: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        away = points - centre[rows]
        pull = torch.einsum("bij,bj->bi", matrix[rows], away)
        return (away * pull).sum(dim=1) / 2, pull

    return ask


def some_quadratics(count: int, size: int, least: float = 0.1) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(count, size, size, generator=generator, dtype=torch.float64)
    matrix = root @ root.mT / size + least * torch.eye(size, dtype=torch.float64)
    centre = torch.rand(count, size, generator=generator, dtype=torch.float64)
    return matrix, centre


def minimise(
    ask: Ask, start: Tensor, low: float, high: float, tries: int, scale: float = 1.0
) -> Tensor:
    return minimise_in_box(
        ask,
        start,
        torch.full_like(start, low),
        torch.full_like(start, high),
        scale=torch.full((len(start),), scale, dtype=start.dtype),
        tries=tries,
        tolerance=0.0,
    )


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_finds_the_minimum_of_a_quadratic_whatever_the_first_guess(scale: float) -> None:
    matrix, centre = some_quadratics(5, 8)
    ask = quadratic(matrix, centre)
    found = minimise(ask, torch.zeros_like(centre), -10, 10, tries=30, scale=scale)
    assert torch.allclose(found, centre, atol=1e-5)  # steepest descent would be 1e-2 away


def test_the_minimum_in_a_box_holds_what_would_leave_it() -> None:
    """At the minimum the gradient vanishes, or points out of the box (Karush, Kuhn, Tucker)."""
    matrix, centre = some_quadratics(6, 8)
    ask = quadratic(matrix, centre)
    found = minimise(ask, torch.full_like(centre, 0.5), 0.4, 0.6, tries=20)
    _, grad = ask(found, torch.arange(6))
    inside = (found > 0.4) & (found < 0.6)
    assert inside.any()
    assert not inside.all()
    assert grad[inside].abs().max() < 1e-6
    assert (grad[found == 0.4] >= 0).all()
    assert (grad[found == 0.6] <= 0).all()


def test_no_row_of_many_is_stuck_where_the_box_turns_a_step_uphill() -> None:
    matrix, centre = some_quadratics(256, 2, least=0.01)
    ask = quadratic(matrix, 3 * centre - 1)
    found = minimise(ask, torch.full_like(centre, 0.5), 0, 1, tries=100)
    _, grad = ask(found, torch.arange(256))
    free = torch.where(grad > 0, found > 0, found < 1)
    assert (grad * free).abs().max() < 1e-5


def test_follows_a_bent_valley() -> None:
    def rosenbrock(points: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        points = points.detach().requires_grad_()
        x, y = points.unbind(dim=1)
        value = (1 - x).square() + 100 * (y - x.square()).square()
        return value.detach(), torch.autograd.grad(value.sum(), points)[0]

    start = torch.tensor([[-1.2, 1.0], [0.0, 0.0], [2.0, -2.0]], dtype=torch.float64)
    found = minimise(rosenbrock, start, -3, 3, tries=100)
    assert torch.allclose(found, torch.ones_like(found), atol=1e-4)


def test_rows_share_nothing() -> None:
    matrix, centre = some_quadratics(4, 6)
    together = minimise(quadratic(matrix, centre), torch.zeros_like(centre), -1, 1, tries=12)
    for row in range(4):
        only = slice(row, row + 1)
        ask = quadratic(matrix[only], centre[only])
        alone = minimise(ask, torch.zeros_like(centre[only]), -1, 1, tries=12)
        assert torch.equal(alone, together[only])


@pytest.mark.parametrize("tries", [1, 2, 7])
def test_asks_no_more_often_than_it_may_and_not_at_all_when_settled(tries: int) -> None:
    matrix, centre = some_quadratics(3, 6)
    asked = torch.zeros(3, dtype=torch.long)

    def ask(points: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        asked[rows] += 1
        return quadratic(matrix, centre)(points, rows)

    start = torch.zeros_like(centre)
    start[1] = centre[1]  # at its minimum from the beginning
    minimise(ask, start, -1, 1, tries=tries)
    assert asked.tolist() == [tries, 1, tries]


def test_a_function_that_is_nowhere_finite_is_soon_left_at_its_start() -> None:
    asked = 0

    def ask(points: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal asked
        asked += 1
        return torch.full((len(rows),), torch.nan), torch.ones_like(points)

    start = torch.full((2, 3), 0.5)
    assert torch.equal(minimise(ask, start, 0, 1, tries=50), start)
    assert asked < 10


def points_of(value: Callable[[Tensor], Tensor], start: float, *, scale: float) -> list[float]:
    """The points at which a function of one number in [-1, 1] is evaluated, ten at most."""
    seen = list[float]()

    def ask(points: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        seen.append(points.item())
        return value(points).flatten(), 2 * points

    one = torch.ones(1, 1, dtype=torch.float64)
    minimise_in_box(ask, start * one, -one, one, scale=torch.full((1,), scale).double(), tries=10)
    return seen


def test_a_row_settles_when_a_move_lowers_its_value_by_too_small_a_share() -> None:
    assert points_of(lambda x: 1e6 + x.square(), 0.5, scale=0.25) == [0.5, 0.25]
    assert len(points_of(lambda x: 1 + x.square(), 0.5, scale=0.25)) > 2


def test_a_step_that_fails_is_shortened_to_the_minimum_of_a_parabola() -> None:
    assert points_of(lambda x: x.square(), 0.5, scale=1.25) == [0.5, -0.75, 0.0]
