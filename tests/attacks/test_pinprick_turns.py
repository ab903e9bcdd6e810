"""Which search of Pinprick comes next, and for how many passes."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
import torch
from grey_images import grey, lead
from torch import Tensor

from pinprick import Problem
from pinprick.attacks import Pinprick
from pinprick.attacks.pinprick import turns as turns_file
from pinprick.attacks.pinprick.lockstep import Answer, Search, Turn
from pinprick.attacks.pinprick.turns import Kind, Plan, Turns
from pinprick.parts.best import Best
from pinprick.parts.units import Units

ELEMENTS = Units("elements")
START, ANNEAL, REGIONS, SWAP = range(4)  # the kinds of this plan, in their order
PLAN = Plan(
    first=100,
    dense=10,
    first_trim=40,
    first_memory=0.95,
    trim=1 / 4,
    rivals=9,
    kinds=(
        Kind("start", pace=12, memory=0.9, temperature=0.6, aimed=True),
        Kind("anneal", pace=20),
        Kind("start", pace=12, memory=0.8, temperature=0.6, favour=1.0),
        Kind("swap", pace=20),
    ),
)


def turns_of(
    cost: list[float],
    problem: Problem | None = None,
    *,
    plan: Plan = PLAN,
    eight_bit: bool = False,
) -> tuple[Turns, Best]:
    """Turns for images that need so many units."""
    problem = grey(len(cost)) if problem is None else problem
    best = Best(problem.images)
    best.cost = torch.tensor(cost, dtype=torch.float32)
    return Turns(problem, best, ELEMENTS, plan, eight_bit=eight_bit), best


def passes_of(turn: Turn) -> int:
    """How many candidates a turn has, none of which fools."""
    passes = 0
    while turn.candidates is not None:
        grad = torch.ones_like(turn.candidates)
        margin = grad[:, 0, 0, 0]
        turn.tell(Answer(margin, margin < 0, grad))
        passes += 1
    return passes


def kinds(turns: Turns, rows: list[int], done: int = 100) -> dict[int | None, list[int]]:
    """The images that take each kind of turn next."""
    taken: dict[int | None, list[int]] = {}
    for turn in turns.next(torch.tensor(rows), done):
        taken.setdefault(turn.kind, []).extend(turn.rows.tolist())
    return taken


# The kind


def test_the_plan_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Pinprick.plan.first = 1  # type: ignore[misc]


def test_the_kind_that_failed_least_often_in_a_row_comes_next_and_of_equals_the_first() -> None:
    turns, _ = turns_of([9, 9, 9, 9, 9])
    turns._failures = torch.tensor(
        [[0, 0, 0, 0], [1, 0, 0, 0], [2, 1, 2, 1], [3, 3, 3, 2], [1, 1, 1, 1]]
    )
    assert kinds(turns, [0, 1, 2, 3, 4]) == {START: [0, 4], ANNEAL: [1, 2], SWAP: [3]}
    assert kinds(turns, [3, 1]) == {SWAP: [3], ANNEAL: [1]}


def test_a_turn_that_finds_no_fewer_units_has_failed_and_one_that_does_clears_the_count() -> None:
    turns, best = turns_of([9, 9, 9])
    order = []
    for _ in range(6):
        over = list(turns.next(torch.arange(3), 100))
        order.append(sorted((row, turn.kind) for turn in over for row in turn.rows.tolist()))
        if len(order) == 2:
            best.cost = torch.tensor([9.0, 8.0, 9.0])  # annealing helped the second image
        assert sorted(turns.learn(over).tolist()) == [0, 1, 2]
    of = [[kind for one in order for row, kind in one if row == image] for image in range(3)]
    assert of[0] == of[2] == [START, ANNEAL, REGIONS, SWAP, START, ANNEAL]
    assert of[1] == [START, ANNEAL, ANNEAL, REGIONS, SWAP, START]


def test_the_first_turn_is_nobody_s_failure() -> None:
    turns, _ = turns_of([torch.inf, torch.inf])
    first = turns.first()
    assert (first.kind, first.rows.tolist()) == (None, [0, 1])
    assert turns.learn([first]).tolist() == [0, 1]
    assert not turns._failures.any()
    assert turns.learn([]).tolist() == []


# The length


@pytest.mark.parametrize(
    ("cost", "length"),  # of 20 passes per square root
    [
        (2, 40),
        (4, 40),
        (5, 60),
        (9, 60),
        (10, 80),
        (16, 80),
        (17, 100),
        (25, 100),
        (26, 160),
        (64, 160),
        (65, 240),
        (144, 240),
        (145, 400),
        (torch.inf, 400),
    ],
)
def test_passes_grow_with_the_square_root_of_the_units(cost: float, length: int) -> None:
    turns, _ = turns_of([cost], grey(1, shape=(1, 4, 4)))
    turns._failures[:, [START, REGIONS, SWAP]] = 1
    (turn,) = turns.next(torch.arange(1), 100)
    assert turn.kind == ANNEAL
    assert turn.known.tolist() == [cost]
    assert passes_of(turn) == length


def test_each_kind_has_a_pace_and_images_of_one_length_share_a_turn() -> None:
    """Of 16 units: 12 * 4 = 48 passes of a start, 20 * 4 = 80 of an anneal."""
    turns, _ = turns_of([16, 25, 16, 16])
    turns._failures[3] = torch.tensor([1, 0, 0, 0])
    taken = [
        (turn.kind, turn.rows.tolist(), passes_of(turn))
        for turn in turns.next(torch.arange(4), 100)
    ]
    assert taken == [(START, [0, 1, 2], 60), (ANNEAL, [3], 80)]


def test_the_first_turn_is_of_one_length_for_all() -> None:
    turns, _ = turns_of([torch.inf, torch.inf])
    assert passes_of(turns.first()) == 100


# What a turn consists of


class Recorded:
    """The arguments of the searches, which yield clean images."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[Any, ...]] = []
        for name in ("start", "anneal", "trim"):
            monkeypatch.setattr(turns_file, name, self._search(name))

    def _search(self, name: str) -> Any:
        def search(part: Problem, units: Units, steps: int, **given: Any) -> Search:
            found, known = given.pop("found", None), given.pop("known", None)
            costs = known if found is None else found.cost
            assert costs is not None
            self.calls.append((name, steps, costs.tolist(), given))
            for _ in range(steps):
                yield part.images
            better = Best(part.images)
            better.cost = costs - 1
            return better

        return search


def test_the_first_turn_is_a_start_with_signed_steps_and_its_trim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded = Recorded(monkeypatch)
    turns, _ = turns_of([torch.inf], eight_bit=True)
    assert passes_of(turns.first()) == 100
    use = "pinprick, first turn"
    assert recorded.calls == [
        ("start", 60, [torch.inf], {"dense": 10, "memory": 0.95, "use": use, "eight_bit": True}),
        ("trim", 40, [torch.inf], {"use": f"{use}, trim", "eight_bit": True}),
    ]


@pytest.mark.parametrize(
    ("kind", "length", "before"),
    [
        (START, 60, ("start", 45, {"memory": 0.9, "temperature": 0.6, "favour": 0.0})),
        (ANNEAL, 80, ("anneal", 60, {})),
        (REGIONS, 60, ("start", 45, {"memory": 0.8, "temperature": 0.6, "favour": 1.0})),
        (SWAP, 80, None),
    ],
)
def test_a_quarter_of_a_later_turn_trims_what_it_found(
    monkeypatch: pytest.MonkeyPatch, kind: int, length: int, before: tuple[str, int, Any] | None
) -> None:
    recorded = Recorded(monkeypatch)
    turns, best = turns_of([3, 12])
    turns._failures += 1
    turns._failures[:, kind] = 0
    (turn,) = turns.next(torch.tensor([1]), 129)
    assert passes_of(turn) == length
    use = f"pinprick, pass 129, kind {kind}"
    trim = {"use": f"{use}, trim", "eight_bit": False}
    if before is None:
        assert recorded.calls == [("trim", length, [12], trim)]
    else:
        name, steps, settings = before
        settings |= {"eight_bit": False} | ({"use": use} if name == "start" else {})
        assert recorded.calls == [
            (name, steps, [12], settings),
            ("trim", length - steps, [11], trim),
        ]
    assert best.cost.tolist() == [3, 12]  # only judged candidates are saved


@pytest.mark.parametrize(
    ("cost", "memory", "temperature"),
    [(9, 0.9, 0.6), (25, 0.9, 0.6), (100, 0.9625, 0.225), (400, 0.975, 0.15)],
)
def test_longer_starts_remember_more_and_draw_less(
    monkeypatch: pytest.MonkeyPatch, cost: float, memory: float, temperature: float
) -> None:
    """Of 40, 60, 160 and 240 passes; memory and temperature are stated for 60."""
    recorded = Recorded(monkeypatch)
    turns, _ = turns_of([cost])
    (turn,) = turns.next(torch.arange(1), 100)
    passes_of(turn)
    _, _, _, given = recorded.calls[0]
    assert given["memory"] == pytest.approx(memory)
    assert given["temperature"] == pytest.approx(temperature)


# Aims


def far(images: Tensor) -> Tensor:
    """Class 0 leads; class 3 takes the fewest units, then class 1, then class 2."""
    flat = images.flatten(1)
    scores = [-flat[:, :10].sum(dim=1) * slope - lag for slope, lag in ((3, 20), (1, 10), (5, 20))]
    return torch.stack([torch.zeros_like(flat[:, 0]), *scores], dim=1)


def test_aimed_turns_go_through_the_rivals_of_each_image() -> None:
    turns, _ = turns_of([9, 9], grey(2, far))
    assert turns.rank_rivals(torch.arange(2), 50) == 3
    aims = []
    for rows in ([0], [0, 1], [0, 1], [0, 1]):
        (turn,) = turns.next(torch.tensor(rows), 100)
        assert turn.aims is not None
        aims.append(turn.aims.tolist())
    assert aims == [[3], [1, 3], [2, 1], [3, 2]]


def test_only_aimed_kinds_have_an_aim() -> None:
    turns, _ = turns_of([9], grey(1, far))
    (turn,) = turns.next(torch.arange(1), 100)
    assert turn.aims is None  # classes are not ranked yet
    turns.rank_rivals(torch.arange(1), 50)
    turns._failures[:, START] = 1
    (turn,) = turns.next(torch.arange(1), 100)
    assert (turn.kind, turn.aims) == (ANNEAL, None)


@pytest.mark.parametrize(("left", "passes"), [(50, 3), (3, 3), (2, 2), (0, 0)])
def test_a_ranking_takes_a_pass_per_class_and_no_more_than_are_left(left: int, passes: int) -> None:
    problem = grey(3, far)
    turns, _ = turns_of([9, 9, 1], problem)
    assert turns.rank_rivals(torch.arange(2), left) == passes
    assert problem.tally.backwards.tolist() == [passes, passes, 0]
    assert problem.tally.forwards.tolist() == [min(passes, 1), min(passes, 1), 0]


def test_no_classes_are_ranked_with_a_target_or_without_images_or_aims() -> None:
    problem = grey(1, lead, targeted=True)
    assert turns_of([9], problem)[0].rank_rivals(torch.arange(1), 50) == 0
    assert turns_of([1])[0].rank_rivals(torch.arange(0), 50) == 0
    without = replace(PLAN, rivals=0)
    assert turns_of([9], plan=without)[0].rank_rivals(torch.arange(1), 50) == 0
    assert not problem.tally.forwards.any()
