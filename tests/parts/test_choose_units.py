"""Gates by hand, against a sort, and against the frequencies that a draw should have."""

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams
from pinprick.parts.choose_units import (
    corner,
    draw_largest,
    draw_noise,
    promise,
    scaled,
)
from pinprick.parts.largest import mask_largest
from pinprick.parts.units import Units


def problem_of(images: Tensor, allowed: Tensor | None = None) -> Problem:
    labels = torch.zeros(len(images), dtype=torch.long)
    rng = Streams(3, torch.arange(len(images)))
    return Problem(Classifier(lambda x: x.flatten(1)), images, Goal(labels), rng, allowed=allowed)


IMAGE = torch.tensor([[[[0.25, 0.5]], [[0.75, 0.0]]]])
DIRECTION = torch.tensor([[[[2.0, -4.0]], [[0.0, 1.0]]]])


def test_an_open_gate_goes_downhill_as_far_as_the_box_lets_it() -> None:
    edge = corner(DIRECTION, problem_of(IMAGE))
    assert edge.tolist() == [[[[0.0, 1.0]], [[0.75, 0.0]]]]  # no slope, no move


def test_what_may_not_change_stays_and_promises_nothing() -> None:
    allowed = torch.tensor([[[[True, False]], [[True, True]]]])
    edge = corner(DIRECTION, problem_of(IMAGE, allowed))
    assert edge.tolist() == [[[[0.0, 0.5]], [[0.75, 0.0]]]]
    assert promise(DIRECTION, edge, IMAGE, Units("elements")).tolist() == [[0.5, 0, 0, 0]]


def test_a_promise_is_slope_times_room() -> None:
    edge = corner(DIRECTION, problem_of(IMAGE))
    assert promise(DIRECTION, edge, IMAGE, Units("elements")).tolist() == [[0.5, 2, 0, 0]]
    up = DIRECTION.clone()
    up[0, 1, 0, 0] = -1
    edge = corner(up, problem_of(IMAGE))
    assert promise(up, edge, IMAGE, Units("pixels")).tolist() == [[0.75, 2]]


@pytest.mark.parametrize("levels", [2**24, 256])
def test_a_draw_among_many_does_not_depend_on_the_bound(levels: int) -> None:
    images = torch.rand(2, 3, 50, 50, generator=torch.Generator().manual_seed(0))
    images = (images * levels).floor() / levels
    problem, scores, count = problem_of(images), images.flatten(1), torch.tensor([50.0, 4500.0])

    def draw(rows: Tensor, most: int) -> Tensor:
        part = problem[rows]
        return draw_largest(
            part, scores[rows], count[rows], most, temperature=0.5, step=0, use="a draw"
        )

    chosen = draw(torch.arange(2), 4500)
    assert chosen.sum(dim=1).tolist() == [50, 4500]
    assert torch.equal(draw(torch.arange(2), 7500), chosen)
    assert torch.equal(draw(torch.arange(1), 50), chosen[:1])


@pytest.mark.parametrize("temperature", [0.3, 0.6, 1.0])
def test_gates_are_drawn_as_often_as_their_promise_says(temperature: float) -> None:
    """The first two of a draw without replacement, by Pearson's test at one in a thousand."""
    draws = 20_000
    promises = torch.tensor([1.0, 1.5, 2.0, 3.0], dtype=torch.float64)
    problem = problem_of(torch.zeros(draws, 1, 2, 2, dtype=torch.float64))
    scores = promises * draw_noise(problem, 4, temperature, 5, "test")
    first, second = scores.topk(2, dim=1).indices.unbind(dim=1)
    weight = promises ** (1 / temperature)
    chance = weight / weight.sum()
    pairs = chance.unsqueeze(1) * chance / (1 - chance.unsqueeze(1))
    off = ~torch.eye(4, dtype=torch.bool)
    expected = draws * pairs[off]
    assert torch.isclose(expected.sum(), torch.tensor(draws, dtype=torch.float64))
    seen = torch.bincount(4 * first + second, minlength=16).view(4, 4)[off]
    assert ((seen - expected) ** 2 / expected).sum() < 31.3  # 11 degrees of freedom


def test_a_draw_belongs_to_its_image_step_and_use() -> None:
    problem = problem_of(torch.zeros(4, 1, 2, 2))
    whole = draw_noise(problem, 4, 0.5, 0, "a")
    assert torch.equal(draw_noise(problem[torch.tensor([2])], 4, 0.5, 0, "a"), whole[2:3])
    assert not torch.equal(draw_noise(problem, 4, 0.5, 1, "a"), whole)
    assert not torch.equal(draw_noise(problem, 4, 0.5, 0, "b"), whole)
    assert (whole.isfinite() & (whole > 0)).all()


def test_each_gradient_is_scaled_by_its_largest_entry() -> None:
    gradient = torch.tensor([[2.0, -8.0], [0.0, 0.0], [1e-30, 0.0]]).view(3, 1, 1, 2)
    expected = [[0.25, -1.0], [0.0, 0.0], [1.0, 0.0]]
    assert scaled(gradient).flatten(1).tolist() == expected


def test_a_draw_is_among_the_most_promising_alone() -> None:
    problem = problem_of(torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0)))
    scores = torch.ones(2, 3 * 64 * 64)
    scores[:, 5000 : 5000 + 4096] = 2.0
    count = torch.full((2,), 100.0)
    gates = draw_largest(problem, scores, count, 100, temperature=5.0, step=0, use="a")
    assert gates.sum(dim=1).tolist() == [100, 100]
    assert not gates[:, :5000].any()
    assert not gates[:, 5000 + 4096 :].any()
    assert not torch.equal(gates[0], gates[1])


def test_a_cold_draw_is_a_sort() -> None:
    problem = problem_of(torch.rand(1, 1, 1, 4))
    scores = torch.tensor([[0.1, 3.0, 2.0, 0.5]])
    gates = draw_largest(problem, scores, torch.tensor([2.0]), 2, temperature=0.0, step=0, use="a")
    assert gates.tolist() == [[False, True, True, False]]


class AlmostOne(Streams):
    """Gives the largest random number there is."""

    def uniform(self, *shape: int, step: int | Tensor, use: str) -> Tensor:
        return torch.full((1, *shape), 1 - 2**-24)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_noise_never_lifts_what_promises_nothing(dtype: torch.dtype) -> None:
    """A random number that is rounded to one must not make it infinite: 0 times that is NaN."""
    problem = problem_of(torch.zeros(1, 1, 2, 2, dtype=dtype))
    problem.rng = AlmostOne(0, torch.arange(1))
    noise = draw_noise(problem, 4, 1.0, 0, "test")
    assert noise.dtype == dtype
    gates = mask_largest(torch.tensor([[0, 0, 0, 1]]).to(dtype) * noise, torch.tensor([1]), 1)
    assert gates.tolist() == [[False, False, False, True]]


def test_noise_is_as_fine_for_images_of_half_precision() -> None:
    single = problem_of(torch.zeros(20, 1, 2, 2))
    half = problem_of(torch.zeros(20, 1, 2, 2, dtype=torch.float16))
    expected = draw_noise(single, 5000, 1.0, 0, "test")
    torch.testing.assert_close(draw_noise(half, 5000, 1.0, 0, "test"), expected.half())
