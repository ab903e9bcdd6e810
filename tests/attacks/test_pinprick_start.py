"""A start by hand: how many gates it opens, what it remembers, and its signed steps."""

from typing import Any

import pytest
import torch
from drive_search import drive
from grey_images import any_change, grey, lead
from torch import Tensor

from pinprick import Problem
from pinprick.attacks.pinprick import start as start_file
from pinprick.attacks.pinprick.lockstep import Answer
from pinprick.attacks.pinprick.start import start
from pinprick.parts.choose_units import draw_largest
from pinprick.parts.units import Units

ELEMENTS = Units("elements")


class Drawn:
    """The arguments of each draw of gates."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scores: list[Tensor] = []
        self.counts: list[float] = []
        self.bounds: list[int] = []
        self.temperatures: list[float] = []

        def note(problem: Problem, scores: Tensor, count: Tensor, most: int, **rest: Any) -> Tensor:
            self.scores.append(scores)
            self.counts.append(count.item())
            self.bounds.append(most)
            self.temperatures.append(rest["temperature"])
            return draw_largest(problem, scores, count, most, **rest)

        monkeypatch.setattr(start_file, "draw_largest", note)


def make_start(problem: Problem, steps: int, known: float, **settings: Any) -> list[Tensor]:
    """The candidates of a start."""
    search = start(
        problem,
        ELEMENTS,
        steps,
        known=torch.tensor([float(known)]),
        use="test",
        **{"memory": 0.85, **settings},
    )
    return drive(problem, search).candidates


def test_while_nothing_fools_a_start_opens_three_tenths_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = Drawn(monkeypatch)
    make_start(grey(1, shape=(1, 20, 20)), 7, known=4)
    assert drawn.counts == [16, 21, 28, 37, 49, 64, 84]  # 1.3 times as many, and one
    assert drawn.bounds == [16, 22, 30, 40, 53, 64, 85]  # looked at in every fifth step


@pytest.mark.parametrize(
    ("side", "known", "count"), [(10, torch.inf, 8), (10, 1, 8), (20, torch.inf, 20), (20, 3, 12)]
)
def test_a_start_opens_four_times_what_is_known_to_do(
    monkeypatch: pytest.MonkeyPatch, side: int, known: float, count: int
) -> None:
    drawn = Drawn(monkeypatch)
    make_start(grey(1, shape=(1, side, side)), 1, known=known)
    assert drawn.counts == [count]


def test_once_it_fools_a_start_opens_ever_fewer_and_at_least_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By 0.3 of them at first and 0.02 at the end, along half a cosine."""
    drawn = Drawn(monkeypatch)
    make_start(grey(1, any_change), 8, known=torch.inf)
    assert drawn.counts == [8, 5, 3, 2, 1, 1, 1, 1]


def test_a_start_never_opens_as_many_as_fooled_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight fool; 8 * 0.72 = 5 do not, nor do 5 * 1.23 + 1 = 7; then at most 7."""

    def eight(images: Tensor) -> Tensor:
        few = (images.detach() < 0.5).flatten(1).sum(dim=1, keepdim=True) < 8
        return torch.where(few, lead(images), -lead(images))

    drawn = Drawn(monkeypatch)
    make_start(grey(1, eight), 6, known=torch.inf)
    assert drawn.counts == [8, 5, 7, 7, 7, 7]


def test_a_start_cools_down(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Drawn(monkeypatch)
    make_start(grey(1), 4, known=torch.inf, temperature=0.8)
    assert drawn.temperatures == pytest.approx([0.8, 0.6, 0.4, 0.2])


@pytest.mark.parametrize(
    ("side", "counts"),
    [
        (50, [125, 163, 212, 276, 359, 467, 477]),  # from 400 on
        (100, [500, 651, 847, 1102, 1125, 1148, 1171]),  # from 1000 on
    ],
)
def test_beyond_a_tenth_of_the_units_and_400_a_start_opens_a_fiftieth_more(
    monkeypatch: pytest.MonkeyPatch, side: int, counts: list[int]
) -> None:
    drawn = Drawn(monkeypatch)
    make_start(grey(1, shape=(1, side, side)), 7, known=torch.inf)
    assert drawn.counts == counts


def test_a_start_favours_regions_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Drawn(monkeypatch)
    field = torch.linspace(-1, 1, 100).unsqueeze(0)
    monkeypatch.setattr(start_file, "favoured_regions", lambda *_: field)
    make_start(grey(1), 2, known=torch.inf, favour=2.0)
    first, second = drawn.scores
    torch.testing.assert_close(first, 0.5 * (2 * field).exp())  # slope 1, room 0.5
    loyal = torch.where(field >= field[0, -8], 1.4, 1.0)  # the eight that are open
    torch.testing.assert_close(second, 0.5 * loyal * field.exp())


@pytest.mark.parametrize(("dense", "steps"), [(4, 6), (4, 3)])
def test_signed_steps_come_first_and_grow_shorter(dense: int, steps: int) -> None:
    candidates = make_start(grey(1), steps, known=torch.inf, dense=dense)
    lowest = [adv.min().item() for adv in candidates]
    assert lowest == pytest.approx([0.5, 0.3, 0.15, 0.05, 0, 0][:steps])  # by 0.2 * (1 - step / 4)
    counts = [int(ELEMENTS.count(adv, candidates[0])) for adv in candidates]
    assert counts == [0, 100, 100, 100, 8, 11][:steps]


def test_signed_steps_keep_to_the_grid_and_the_mask() -> None:
    problem = grey(1)
    problem.images = torch.full_like(problem.images, 102 / 255)
    problem.allowed = torch.zeros_like(problem.images, dtype=torch.bool)
    problem.allowed[:, :, :5] = True
    *_, last = candidates = make_start(problem, 8, known=torch.inf, dense=6, eight_bit=True)
    for adv in candidates:
        assert torch.equal((adv * 255).round() / 255, adv)
        assert torch.equal(adv[:, :, 5:], problem.images[:, :, 5:])
    assert (last != problem.images).any()


def test_a_start_that_signed_steps_fooled_opens_fewer_than_any_of_them() -> None:
    """All 9 values change in signed steps; 8 gates at most from then on."""
    candidates = make_start(grey(1, any_change, (1, 3, 3)), 6, known=torch.inf, dense=3)
    counts = [int(ELEMENTS.count(adv, candidates[0])) for adv in candidates]
    assert counts[:4] == [0, 9, 9, 8]


@pytest.mark.parametrize(
    ("memory", "weights"),
    [
        (0.9, [[1, 0, 0, 0], [1 / 2, 1 / 2, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [1 / 4] * 4]),
        (
            0.5,
            [
                [1, 0, 0, 0],
                [1 / 2, 1 / 2, 0, 0],
                [1 / 4, 1 / 4, 1 / 2, 0],
                [1 / 8, 1 / 8, 1 / 4, 1 / 2],
            ],
        ),
        (0.0, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
    ],
)
def test_gradients_count_the_same_until_the_memory_is_full(
    monkeypatch: pytest.MonkeyPatch, memory: float, weights: list[list[float]]
) -> None:
    """The gradient of each pass is at a value of its own, and largest values count as 1."""
    drawn, problem = Drawn(monkeypatch), grey(1)
    search = start(problem, ELEMENTS, 4, known=torch.tensor([2.0]), memory=memory, use="test")
    adv = next(search)
    for step in range(4):
        grad = torch.zeros_like(adv)
        grad.flatten()[step] = 7.0
        answer = Answer(torch.ones(1), torch.zeros(1, dtype=torch.bool), grad)
        opened = (adv != problem.images).flatten()[:4]
        if step < 3:
            adv = search.send(answer)
        else:
            with pytest.raises(StopIteration):
                search.send(answer)
        promises = drawn.scores[step][0, :4] / torch.where(opened, 1.4, 1.0)
        torch.testing.assert_close(promises, 0.5 * torch.tensor(weights[step]).float())
