"""A start by hand: how many gates it opens, what it remembers, and its signed steps."""

from typing import Any

import pytest
import torch
from drive_search import ELEMENTS, assert_same, cut_and_joined, drive, each_pass
from grey_images import any_change, grey, lead
from torch import Tensor

from pinprick import Goal, Problem, Streams
from pinprick.attacks.pinprick import start as start_file
from pinprick.attacks.pinprick.lockstep import Answer
from pinprick.attacks.pinprick.start import Start
from pinprick.oracle import exact_images, exact_linear, sure_images
from pinprick.parts.choose_units import draw_largest


class Drawn:
    """The arguments of each draw of gates; of the counts, that of the first image."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scores: list[Tensor] = []
        self.counts: list[float] = []
        self.bounds: list[int] = []
        self.temperatures: list[float | Tensor] = []

        def note(problem: Problem, scores: Tensor, count: Tensor, most: int, **rest: Any) -> Tensor:
            self.scores.append(scores)
            self.counts.append(count[0].item())
            self.bounds.append(most)
            self.temperatures.append(rest["temperature"])
            return draw_largest(problem, scores, count, most, **rest)

        monkeypatch.setattr(start_file, "draw_largest", note)


def start_of(
    problem: Problem, length: int, known: float | Tensor = torch.inf, **settings: Any
) -> Start:
    """A start of all images of a problem, which aims at no class."""
    rows = torch.arange(len(problem))
    return Start(
        problem.images,
        ELEMENTS,
        rows,
        torch.full_like(rows, -1),
        torch.full_like(rows, length),
        torch.zeros_like(rows),
        known=torch.as_tensor(known).float().expand(len(problem)),
        **{
            "memory": torch.full((len(problem),), 0.85),
            **settings,
        },
    )


def make_start(
    problem: Problem, length: int, *, slot: int | None = None, **settings: Any
) -> list[Tensor]:
    """The candidates of a start."""
    return drive(problem, start_of(problem, length, **settings), slot=slot).candidates


@pytest.mark.parametrize(
    ("slot", "last"),
    [(3, [64, 84]), (None, [64, 64])],  # at most fourfold in a slot
)
def test_while_nothing_fools_a_start_opens_three_tenths_more(
    monkeypatch: pytest.MonkeyPatch, slot: int | None, last: list[int]
) -> None:
    drawn = Drawn(monkeypatch)
    make_start(grey(1, shape=(1, 20, 20)), 7, known=4, slot=slot)
    assert drawn.counts == [16, 21, 28, 37, 49, *last]  # 1.3 times as many, and one
    assert drawn.bounds == drawn.counts  # on a CPU


def test_the_bound_on_the_gates_is_that_of_the_image_with_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = Drawn(monkeypatch)
    make_start(grey(3, shape=(1, 20, 20)), 2, known=torch.tensor([3, 5, 4]))
    assert drawn.counts == [12, 16]
    assert drawn.bounds == [20, 27]


@pytest.mark.parametrize(
    ("side", "known", "count"), [(10, torch.inf, 8), (10, 1, 8), (20, torch.inf, 20), (20, 3, 12)]
)
def test_a_start_opens_four_times_what_is_known_to_do(
    monkeypatch: pytest.MonkeyPatch, side: int, known: float, count: int
) -> None:
    drawn = Drawn(monkeypatch)
    make_start(grey(1, shape=(1, side, side)), 1, known=known)
    assert drawn.counts == [count]


@pytest.mark.parametrize(
    ("side", "counts"),
    [
        (10, [8, 5, 3, 2, 1, 1, 1, 1]),
        (100, [500, 356, 264, 208, 174, 155, 145, 140]),
    ],
)
@pytest.mark.parametrize("slot", [None, 3])
def test_once_it_fools_a_start_opens_ever_fewer_and_at_least_one(
    monkeypatch: pytest.MonkeyPatch, side: int, counts: list[int], slot: int | None
) -> None:
    """By 0.3 of them at first and 0.02 at the end, along 1 - s * s * (3 - 2 * s).

    After 1/8 of the passes by 0.02 + 0.28 * 0.9570 = 0.2880, after 2/8 by 0.2563, then by 0.2114,
    0.16, 0.1086, 0.0638 and 0.0320.
    """
    drawn = Drawn(monkeypatch)
    make_start(grey(1, any_change, (1, side, side)), 8, slot=slot)
    assert drawn.counts == counts


def test_a_start_never_opens_as_many_as_fooled_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight fool; 8 * 0.72 = 5 do not, nor do 5 * 1.23 + 1 = 7; then at most 7."""

    def eight(images: Tensor) -> Tensor:
        few = (images.detach() < 0.5).flatten(1).sum(dim=1, keepdim=True) < 8
        return torch.where(few, lead(images), -lead(images))

    drawn = Drawn(monkeypatch)
    make_start(grey(1, eight), 6)
    assert drawn.counts == [8, 5, 7, 7, 7, 7]


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
    make_start(grey(1, shape=(1, side, side)), 7)
    assert drawn.counts == counts


# Draws


@pytest.mark.parametrize("slot", [None, 3])
def test_a_start_cools_down(monkeypatch: pytest.MonkeyPatch, slot: int | None) -> None:
    drawn = Drawn(monkeypatch)
    make_start(grey(2), 4, slot=slot, temperature=torch.tensor([0.8, 0.4]))
    warmth = torch.tensor([[0.8, 0.4], [0.6, 0.3], [0.4, 0.2], [0.2, 0.1]])
    drawn_at = torch.stack([torch.as_tensor(each) for each in drawn.temperatures])
    torch.testing.assert_close(drawn_at, warmth.unsqueeze(2))


def test_a_start_without_temperatures_sorts(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Drawn(monkeypatch)
    make_start(grey(1), 2)
    assert drawn.temperatures == [0, 0]


def test_what_is_drawn_depends_on_the_pass_of_the_attack() -> None:
    problem = grey(1)

    def first_gates(done: int, **settings: Any) -> Tensor:
        search = start_of(problem, 2, **settings)
        _, gates = each_pass(problem, search, ELEMENTS, 2, done)
        return gates

    warm = torch.tensor([0.6])
    drawn = first_gates(0, temperature=warm)
    assert torch.equal(first_gates(0, temperature=warm), drawn)
    assert not torch.equal(first_gates(40, temperature=warm), drawn)
    assert torch.equal(first_gates(40), first_gates(0))  # sorted
    assert not torch.equal(first_gates(0), drawn)


# Signed steps


@pytest.mark.parametrize("slot", [None, 2])
@pytest.mark.parametrize(("signed", "length"), [(3, 6), (3, 3)])
def test_signed_steps_come_first_and_grow_shorter(
    signed: int, length: int, slot: int | None
) -> None:
    candidates = make_start(grey(1), length, slot=slot, signed=signed)
    lowest = [adv.min().item() for adv in candidates]
    assert lowest == pytest.approx([0.5, 0.3, 0.15, 0.05, 0, 0][:length])  # 0.2 * (1 - step / 4)
    counts = [int(ELEMENTS.count(adv, candidates[0])) for adv in candidates]
    assert counts == [0, 100, 100, 100, 8, 11][:length]


def test_signed_steps_keep_to_the_grid_and_the_mask() -> None:
    problem = grey(1)
    problem.images = torch.full_like(problem.images, 102 / 255)
    problem.allowed = torch.zeros_like(problem.images, dtype=torch.bool)
    problem.allowed[:, :, :5] = True
    *_, last = candidates = make_start(problem, 8, signed=5, eight_bit=True)
    for adv in candidates:
        assert torch.equal((adv * 255).round() / 255, adv)
        assert torch.equal(adv[:, :, 5:], problem.images[:, :, 5:])
    assert (last != problem.images).any()


@pytest.mark.parametrize("slot", [None, 2])
def test_a_large_image_that_signed_steps_did_not_fool_begins_anew_with_shorter_ones(
    slot: int | None,
) -> None:
    """128 x 96 grey values are four times those of 32 x 32 colour pixels: half the length."""
    candidates = make_start(grey(1, shape=(1, 128, 96)), 9, slot=slot, signed=3)
    lowest = [adv.min().item() for adv in candidates]
    assert lowest == pytest.approx([0.5, 0.3, 0.15, 0.05, 0.5, 0.4, 0.325, 0.275, 0])
    counts = [int(ELEMENTS.count(adv, candidates[0])) for adv in candidates]
    assert counts == [0, *[12288] * 3, 0, *[12288] * 3, 614]  # a twentieth


def test_a_large_image_that_long_steps_fooled_has_no_shorter_ones() -> None:
    candidates = make_start(grey(1, any_change, shape=(1, 128, 96)), 6, signed=3)
    counts = [int(ELEMENTS.count(adv, candidates[0])) for adv in candidates]
    assert counts[:5] == [0, 12288, 12288, 12288, 614]
    assert counts[5] < 614


def test_a_start_that_signed_steps_fooled_opens_fewer_than_any_of_them() -> None:
    """All 9 values change in signed steps; 8 gates at most from then on."""
    candidates = make_start(grey(1, any_change, (1, 3, 3)), 6, signed=2)
    counts = [int(ELEMENTS.count(adv, candidates[0])) for adv in candidates]
    assert counts[:4] == [0, 9, 9, 8]


# Memory, and company


def test_gradients_count_the_same_until_the_memory_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The gradient of each pass is at a value of its own, and largest values count as 1."""
    weights: dict[float, list[list[float]]] = {
        0.9: [[1, 0, 0, 0], [1 / 2, 1 / 2, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0], [1 / 4] * 4],
        0.5: [
            [1, 0, 0, 0],
            [1 / 2, 1 / 2, 0, 0],
            [1 / 4, 1 / 4, 1 / 2, 0],
            [1 / 8, 1 / 8, 1 / 4, 1 / 2],
        ],
        0.0: [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
    }
    drawn, problem = Drawn(monkeypatch), grey(3)
    search = start_of(problem, 4, known=2, memory=torch.tensor([*weights]))
    for step in range(4):
        slot = search.slot(problem, ELEMENTS, 1, step)  # a slot of its own
        grad = torch.zeros_like(search.adv)
        grad.flatten(1)[:, step] = torch.tensor([7.0, 0.5, 3.0])
        opened = (search.adv != problem.images).flatten(1)[:, :4]
        none = torch.zeros(3, dtype=torch.bool)
        changed = ELEMENTS.count(search.adv, problem.images)
        slot(Answer(torch.ones(3), none, changed, grad), 0)
        search.taken = search.taken + 1
        promises = drawn.scores[step][:, :4] / torch.where(opened, 1.4, 1.0)
        wanted = torch.tensor([each[step] for each in weights.values()], dtype=torch.float32)
        torch.testing.assert_close(promises, 0.5 * wanted)


def test_images_can_leave_and_join_between_slots() -> None:
    shape = (3, 10, 10)
    model = exact_linear(4, shape)
    images = sure_images(model, exact_images(5, shape))
    with model.frozen(), torch.no_grad():
        labels = model(images).argmax(dim=1)
        goal = Goal(labels, (labels + 1) % 4)
        problem = Problem(model, images, goal, Streams(0, torch.arange(5)))
    lengths = torch.tensor([40, 60, 100, 40, 100])

    def begin(rows: Tensor) -> Start:
        return Start(
            images[rows],
            ELEMENTS,
            rows,
            torch.full_like(rows, -1),
            lengths[rows],
            torch.zeros_like(rows),
            known=torch.tensor([torch.inf, 4, 9, 2, torch.inf])[rows],
            memory=torch.tensor([0.9, 0.8, 0.5, 0.9, 0.0])[rows],
            temperature=torch.tensor([0.6, 0.3, 0.4, 0.9, 0.3])[rows],
        )

    assert_same(*cut_and_joined(problem, begin))
