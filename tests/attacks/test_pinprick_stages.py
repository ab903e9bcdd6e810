"""The stages of Pinprick by hand: the plan, which images take which stage, and single steps."""

import itertools
from collections.abc import Callable
from dataclasses import FrozenInstanceError, astuple
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams
from pinprick.attacks import SparseRS
from pinprick.attacks.pinprick import score_search, search
from pinprick.attacks.pinprick.plan import Stage, stages
from pinprick.attacks.pinprick.score_search import ScoreSearch
from pinprick.attacks.pinprick.search import Search, start
from pinprick.parts.best import Best
from pinprick.parts.choose_units import draw_largest
from pinprick.parts.units import Units

ELEMENTS = Units("elements")

# The plan: kind, steps, trim, aim, memory, temperature, favour, resume

USUAL = [
    ("start", 40, 9, None, 0.85, 0.3, 0.0, False),
    ("anneal", 36, 9, None, 0.85, 0.6, 0.0, False),
    ("rank", 9, 0, None, 0.85, 0.6, 0.0, False),
    ("start", 45, 9, 0, 0.9, 0.0, 0.0, False),
    ("start", 45, 9, 1, 0.8, 0.6, 1.0, False),
    ("anneal", 80, 9, None, 0.85, 0.6, 0.0, False),
    ("start", 45, 9, 2, 0.9, 0.6, 0.0, False),
    ("start", 45, 9, None, 0.8, 0.6, 1.0, False),
    ("anneal", 80, 9, None, 0.85, 0.6, 0.0, False),
    ("start", 45, 9, 3, 0.9, 0.6, 0.0, False),
]
SMALL_WITH_TARGET = [
    ("start", 40, 9, None, 0.85, 0.3, 0.0, False),
    ("anneal", 36, 9, None, 0.85, 0.6, 0.0, False),
    ("start", 45, 9, None, 0.9, 0.0, 0.0, False),
    ("start", 45, 9, None, 0.8, 0.6, 1.0, False),
    ("anneal", 80, 9, None, 0.85, 0.6, 0.0, False),
    ("start", 45, 9, None, 0.9, 0.6, 0.0, False),
]
WITH_TARGET = [
    ("start", 60, 40, None, 0.95, 0.0, 0.0, False),
    ("start", 60, 17, None, 0.95, 0.0, 0.0, True),
    ("start", 60, 17, None, 0.9, 0.6, 0.0, False),
    ("start", 60, 17, None, 0.95, 0.0, 1.0, True),
    ("anneal", 80, 17, None, 0.85, 0.6, 0.0, False),
    ("start", 60, 17, None, 0.95, 0.6, 0.0, True),
]
LARGE = [
    ("start", 40, 60, None, 0.9, 0.3, 0.0, False),
    ("start", 240, 160, None, 0.97, 0.0, 0.0, True),
    ("rank", 9, 0, None, 0.85, 0.6, 0.0, False),
    ("start", 240, 160, 0, 0.97, 0.3, 0.0, False),
    ("anneal", 80, 100, None, 0.95, 0.3, 0.0, False),
    ("start", 240, 160, 1, 0.97, 0.3, 0.0, False),
]
LARGE_WITH_TARGET = [
    ("start", 60, 40, None, 0.95, 0.0, 0.0, False),
    ("start", 240, 160, None, 0.97, 0.0, 0.0, True),
    ("start", 240, 160, None, 0.97, 0.3, 0.0, False),
    ("anneal", 80, 100, None, 0.95, 0.3, 0.0, False),
    ("start", 240, 160, None, 0.97, 0.3, 0.0, False),
]


@pytest.mark.parametrize(
    ("units", "targeted", "plan"),
    [
        (784, False, USUAL),
        (784, True, SMALL_WITH_TARGET),
        (3072, True, WITH_TARGET),
        (150_528, False, LARGE),
        (150_528, True, LARGE_WITH_TARGET),
    ],
)
def test_the_plan_is_this_table(units: int, targeted: bool, plan: list[Any]) -> None:
    given = itertools.islice(stages(units, targeted=targeted), len(plan))
    assert [astuple(stage) for stage in given] == plan


@pytest.mark.parametrize(
    ("units", "targeted", "steps", "trim"),
    [
        (100, False, 40, 8),
        (784, False, 40, 9),
        (1_000, True, 40, 10),
        (1_001, True, 60, 40),
        (3_072, False, 40, 17),
        (10_000, False, 40, 29),
        (10_001, False, 40, 60),
    ],
)
def test_the_first_stage_depends_on_the_size(
    units: int, targeted: bool, steps: int, trim: int
) -> None:
    first = next(stages(units, targeted=targeted))
    assert (first.steps, first.trim) == (steps, trim)


def test_a_stage_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        next(stages(784, targeted=False)).steps = 1  # type: ignore[misc]


# Which images take which stage


def lead(images: Tensor) -> Tensor:
    """Class 0 leads by 100, or by more where the image is brighter."""
    first = 100 + images.flatten(1).sum(dim=1)
    return torch.stack((first, torch.zeros_like(first)), dim=1)


def any_change(images: Tensor) -> Tensor:
    """Class 1 as soon as one value is below 0.5; the gradient is that of ``lead``."""
    fools = (images.detach() < 0.5).flatten(1).any(dim=1)
    return lead(images) - 1e6 * fools.unsqueeze(1) * torch.tensor([1.0, 0.0])


def grey(
    count: int,
    model: Callable[[Tensor], Tensor] = lead,
    shape: tuple[int, int, int] = (1, 10, 10),
    targeted: bool = False,
) -> Problem:
    images = torch.full((count, *shape), 0.5)
    labels = torch.zeros(count, dtype=torch.long)
    goal = Goal(labels, labels + 1 if targeted else None)
    return Problem(Classifier(model), images, goal, Streams(0, torch.arange(count)))


def watched(found: list[float]) -> tuple[Search, list[tuple[str, list[int]]]]:
    """A search that has found images of these costs, and the stages that it runs."""
    work = Search(grey(len(found)), ELEMENTS, eight_bit=False)
    work.best.cost = torch.tensor(found, dtype=torch.float32)
    seen: list[tuple[str, list[int]]] = []
    for kind in ("start", "signed_steps", "anneal", "start_twice"):

        def note(rows: Tensor, *_: Any, kind: str = kind) -> None:
            seen.extend([(kind, rows.tolist())] if len(rows) else [])

        setattr(work, f"_{kind}", note)
    return work, seen


@pytest.mark.parametrize(
    ("number", "resume", "expected"),
    [
        (0, False, [("start", [0, 1, 2])]),
        (1, False, [("signed_steps", [0]), ("start", [1]), ("anneal", [2])]),
        (1, True, [("start", [0, 1, 2])]),
        (5, False, [("signed_steps", [0]), ("start", [1]), ("anneal", [2])]),
    ],
)
def test_later_starts_leave_out_images_that_are_lost_or_dense(
    number: int, resume: bool, expected: list[Any]
) -> None:
    work, seen = watched([torch.inf, 7, 90])
    work.run(torch.arange(3), Stage("start", 9, resume=resume), 9, 0, number)
    assert seen == expected


def test_an_annealing_that_did_not_help_is_replaced_by_two_starts() -> None:
    work, seen = watched([torch.inf, 7, 90, 7])
    work._loosened = torch.tensor([False, False, False, True])
    work.run(torch.arange(4), Stage("anneal", 9), 9, 0, 1)
    assert seen == [("start_twice", [1]), ("anneal", [0, 2, 3])]


@pytest.mark.parametrize(
    ("units", "targeted", "most"),
    [(100, False, 64), (100, True, 32), (400, False, 100), (400, True, 32), (1000, True, 50)],
)
def test_dense_is_a_share_of_the_units(units: int, targeted: bool, most: int) -> None:
    work = Search(grey(3, targeted=targeted), ELEMENTS, eight_bit=False)
    work.number = units
    work.best.cost = torch.tensor([most, most + 1, torch.inf])
    assert work._dense(torch.arange(3)).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("stage", "steps", "starts"),
    [
        (Stage("anneal", 60, 20), 60, [(20, 20), (20, 5)]),
        (Stage("anneal", 60, 20), 45, [(20, 20), (5, 5)]),
        (Stage("anneal", 59, 20), 59, [(59, 5)]),  # halves of 19 steps are too short
    ],
)
def test_two_starts_share_the_passes_of_an_annealing(
    stage: Stage, steps: int, starts: list[tuple[int, int]]
) -> None:
    work = Search(grey(1), ELEMENTS, eight_bit=False)
    seen = []

    def note(rows: Tensor, stage: Stage, steps: int, trims: int, use: str) -> None:
        seen.append((steps, trims))

    setattr(work, "_start", note)  # noqa: B010
    work._start_twice(torch.arange(1), stage, steps, 5, "test")
    assert seen == starts


@pytest.mark.parametrize(("aim", "aims"), [(None, None), (0, [1, 3]), (5, [2, 1])])
def test_a_start_aims_at_its_rival_and_is_trimmed_or_rescued(
    monkeypatch: pytest.MonkeyPatch, aim: int | None, aims: list[int] | None
) -> None:
    """The first image is fooled, the second is not; the mean gradient of both is stored."""
    work, seen = watched([7, 8, 9])
    work._rivals = torch.tensor([[4, 4], [1, 2], [3, 1]])
    calls: list[tuple[Any, ...]] = []

    def started(part: Problem, *_: Any, known: Tensor, **given: Any) -> tuple[Best, Tensor]:
        to = None if given["aims"] is None else given["aims"].tolist()
        calls.append((part._rows.tolist(), known.tolist(), to, given["steps"], given["use"]))
        found = Best(part.images)
        found.cost = torch.tensor([5, torch.inf])
        return found, torch.ones_like(part.images)

    def rescued(rows: Tensor, stage: Stage, passes: int, use: str) -> None:
        calls.append(("rescue", rows.tolist(), passes))

    def trimmed(part: Problem, found: Best, units: Units, passes: int, use: str) -> None:
        calls.append(("trim", part._rows.tolist(), passes, use))
        found.cost = found.cost - 1

    monkeypatch.setattr(search, "start", started)
    monkeypatch.setattr(search, "trim", trimmed)
    setattr(work, "_rescue", rescued)  # noqa: B010
    Search._start(work, torch.tensor([1, 2]), Stage("start", 9, 6, aim), 9, 6, "test")
    assert calls == [
        ([1, 2], [8, 9], aims, 9, "test"),
        ("trim", [1], 6, "test, trim"),
        ("rescue", [2], 6),
    ]
    assert work.best.cost.tolist() == [7, 4, 9]
    assert work._mean.flatten(1).sum(dim=1).tolist() == [0, 100, 100]
    assert not seen


def test_a_rescue_takes_signed_steps_or_anneals_for_the_length_of_the_trim() -> None:
    work, _ = watched([torch.inf, 7, 90])
    seen: list[tuple[Any, ...]] = []
    for kind in ("signed_steps", "anneal"):

        def note(
            rows: Tensor, stage: Stage, steps: int, trims: int, use: str, kind: str = kind
        ) -> None:
            seen.append((kind, rows.tolist(), stage.steps, steps, trims))

        setattr(work, f"_{kind}", note)
    work._rescue(torch.arange(3), Stage("start", 9, 6), 0, "test")
    assert not seen
    work._rescue(torch.arange(3), Stage("start", 9, 6), 5, "test")
    assert seen == [("signed_steps", [0], 6, 5, 0), ("anneal", [2], 6, 5, 0)]


def test_an_annealing_is_noted_as_of_use_where_it_found_fewer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work, _ = watched([7, 8, 9])

    def annealed(part: Problem, found: Best, *_: Any, schedule: int, **__: Any) -> None:
        assert schedule == 30
        found.cost = torch.tensor([7.0, 6.0])

    monkeypatch.setattr(search, "anneal", annealed)
    Search._anneal(work, torch.tensor([0, 1]), Stage("anneal", 30), 5, 0, "test")
    assert work._loosened.tolist() == [False, True, True]
    assert work.best.cost.tolist() == [7, 6, 9]


def test_wading_takes_shorter_and_shorter_steps() -> None:
    seen = []

    def model(images: Tensor) -> Tensor:
        seen.append(images[0, 0, 0, 0].item())
        return lead(images)

    work = Search(grey(1, model), ELEMENTS, eight_bit=False)
    work._signed_steps(torch.arange(1), Stage("start", 4), 3, 0, "test")
    assert seen == pytest.approx([0.5, 0.3, 0.15])  # by 0.2 * (1 - step / 4)
    assert work.best.cost.isinf().all()


def test_a_large_image_is_shortened_and_its_gates_redrawn_with_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work, _ = watched([torch.inf, torch.inf, torch.inf])
    work.number = 10_001
    problem, redrawn = work._problem, []

    def remove(part: Problem, found: Best, units: Units, passes: int) -> Tensor:
        problem.tally.forwards[part._rows] += 3
        found.cost = found.cost - 2
        return torch.tensor([0, 4])  # the first is settled

    def redraw(part: Problem, found: Best, units: Units, passes: Tensor, use: str) -> None:
        redrawn.append((part._rows.tolist(), passes.tolist(), use))

    monkeypatch.setattr(search, "remove_units", remove)
    monkeypatch.setattr(search, "redraw", redraw)
    found = Best(problem.images)
    found.cost = torch.tensor([8, torch.inf, 9])
    work._finish(torch.arange(3), problem, found, 10, "test")
    assert redrawn == [([0, 2], [7, 0], "test, redrawn")]
    assert work.best.cost.tolist() == [6, torch.inf, 7]
    work._finish(torch.arange(3), problem, found, 0, "test")
    assert len(redrawn) == 1  # without passes nothing is tried


# A start


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

        monkeypatch.setattr(search, "draw_largest", note)


def make_start(problem: Problem, steps: int, known: float, **settings: Any) -> None:
    start(
        problem,
        ELEMENTS,
        Stage("start", steps, **{"temperature": 0.0, **settings}),
        known=torch.tensor([float(known)]),
        aims=None,
        mean=torch.zeros_like(problem.images),
        steps=steps,
        use="test",
    )


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
    monkeypatch.setattr(search, "favoured_regions", lambda *_: field)
    make_start(grey(1), 2, known=torch.inf, favour=2.0)
    first, second = drawn.scores
    torch.testing.assert_close(first, 0.5 * (2 * field).exp())  # slope 1, room 0.5
    loyal = torch.where(field >= field[0, -8], 1.4, 1.0)  # the eight that are open
    torch.testing.assert_close(second, 0.5 * loyal * field.exp())


# The search by scores alone


def turns_of(
    cost: list[float], passes: int, *, stop_at: int = 1, most: int = 1000
) -> list[tuple[int, list[int]]]:
    """The turns of a search by scores, each of which takes at most ``most`` of its passes."""
    problem = grey(len(cost))
    best = Best(problem.images)
    best.cost = torch.tensor(cost, dtype=torch.float32)
    work = ScoreSearch(problem, best, ELEMENTS, stop_at=stop_at)
    seen = []

    def take(rows: Tensor, size: int, turn: int) -> None:
        seen.extend([(size, rows.tolist())] if len(rows) else [])
        problem.tally.forwards[rows] += min(size, most)

    setattr(work, "_take_turn", take)  # noqa: B010
    work.run(passes)
    return seen


def test_a_turn_is_a_third_of_the_passes_or_a_part_of_that_where_fewer_are_left() -> None:
    assert turns_of([5], 81) == [(27, [0])] * 3
    assert turns_of([5], 81, most=20) == [(27, [0])] * 3 + [(9, [0])] * 2
    sizes = {1: [1], 3: [1], 71: [23], 72: [24, 8], 700: [233, 77, 25, 8]}
    assert {passes: score_search._sizes(passes) for passes in sizes} == sizes


def test_an_image_with_few_enough_units_takes_no_turn() -> None:
    assert turns_of([3, 4, torch.inf], 3, stop_at=3) == [(1, [1, 2])] * 3


def test_units_are_removed_until_each_is_needed_and_then_swapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first image has been fooled by two units, the second one by none."""
    problem = grey(2)
    best = Best(problem.images)
    best.cost = torch.tensor([2.0, torch.inf])
    calls: list[tuple[Any, ...]] = []
    left = iter((1, 0))  # units that may still be removed

    def remove(part: Problem, found: Best, units: Units, passes: int) -> Tensor:
        calls.append(("remove", part._rows.tolist()))
        problem.tally.forwards[part._rows] += passes
        return torch.full((len(part),), next(left))

    def swap(
        self: SparseRS, part: Problem, k: Tensor, near: Tensor, trial: int
    ) -> tuple[Tensor, Tensor]:
        calls.append(("swap", part._rows.tolist(), k.tolist(), trial, self.queries))
        problem.tally.forwards[part._rows] += int(self.queries or 0)
        return part.images, torch.zeros(len(part), dtype=torch.bool)

    monkeypatch.setattr(score_search, "remove_units", remove)
    monkeypatch.setattr(SparseRS, "search", swap)
    ScoreSearch(problem, best, ELEMENTS, stop_at=1).run(30)
    assert calls == [
        ("remove", [0]),
        ("swap", [1], [25], 0, 10),
        ("remove", [0]),
        ("swap", [1], [25], 1, 10),
        ("swap", [0, 1], [1, 25], 2, 10),
    ]
