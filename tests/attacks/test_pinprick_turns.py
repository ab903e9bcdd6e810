"""Which search of Pinprick comes next, and for how many passes."""

from dataclasses import FrozenInstanceError, replace
from itertools import pairwise
from typing import Any, Literal

import pytest
import torch
from grey_images import grey, lead
from torch import Tensor

from pinprick import Problem
from pinprick.attacks import Pinprick
from pinprick.attacks.pinprick import turns as turns_file
from pinprick.attacks.pinprick.anneal import Anneal
from pinprick.attacks.pinprick.lockstep import Search, take_passes
from pinprick.attacks.pinprick.start import Start
from pinprick.attacks.pinprick.trim import Trim
from pinprick.attacks.pinprick.turns import SLOT, Kind, Plan, Turns
from pinprick.parts.best import Best
from pinprick.parts.units import Units

ELEMENTS = Units("elements")
START, FAST, SLOW = range(3)  # the kinds of this plan, in their order
PLAN = Plan(
    first=100,
    signed=9,
    first_trim=40,
    first_memory=0.95,
    trim=0.4,
    stride=0.05,
    rivals=9,
    many=0.3,
    kinds=(
        Kind("start", pace=12, memory=0.9, temperature=0.6),
        Kind("anneal", pace=40, rate=2.0),
        Kind("anneal", pace=20, rate=0.5),
    ),
)


def first_of(
    count: int, problem: Problem | None = None, *, plan: Plan = PLAN, eight_bit: bool = False
) -> tuple[Turns, Best]:
    """Turns before the first pass."""
    problem = grey(count) if problem is None else problem
    best = Best(problem.images)
    return Turns(problem, best, ELEMENTS, plan, eight_bit=eight_bit), best


def turns_of(
    cost: list[float],
    problem: Problem | None = None,
    *,
    next_kinds: list[int] | None = None,
    plan: Plan = PLAN,
    eight_bit: bool = False,
) -> tuple[Turns, Best]:
    """Turns after the first one, of images that need so many units, and the next kind of each."""
    turns, best = first_of(len(cost), problem, plan=plan, eight_bit=eight_bit)
    best.cost = torch.tensor(cost, dtype=torch.float32)
    turns.searches.clear()
    if next_kinds is not None:
        prefer(turns, next_kinds)
    return turns, best


def prefer(turns: Turns, next_kinds: list[int]) -> None:
    """Make these kinds the next ones: all others failed."""
    turns._worth[:] = -1
    turns._worth[torch.arange(len(next_kinds)), next_kinds] = 0.5


def pass_slot(turns: Turns, found: dict[int, float] | None = None) -> list[int]:
    """Let a slot pass in which these images need so many units; returns those of turns over."""
    for search in turns.searches:
        search.taken = search.taken + SLOT
        for index, row in enumerate(search.rows.tolist()):
            if found is not None and row in found:
                search.found.cost[index] = found[row]
    return turns.end_slot(1).tolist()


def searches(turns: Turns) -> dict[str, list[int]]:
    """The images in each search."""
    return {type(search).__name__: search.rows.tolist() for search in turns.searches}


def only(turns: Turns) -> Search:
    (search,) = turns.searches
    return search


def passes_of(turns: Turns) -> dict[str, int]:
    """Passes of each search in a turn of one image that finds nothing."""
    passes: dict[str, int] = {}
    over: list[int] = []
    while not over:
        name = type(only(turns)).__name__
        passes[name] = passes.get(name, 0) + SLOT
        over = pass_slot(turns)
    return passes


def take_turn(turns: Turns, row: int = 0, *, to: float | None = None) -> int:
    """Take the next turn of one image, which ends with so many units; returns its kind."""
    turns.begin(torch.tensor([row]))
    while row not in pass_slot(turns, {} if to is None else {row: to}):
        pass
    return int(turns._kind[row])


def take_turns(turns: Turns, number: int) -> list[int]:
    """The kinds of so many turns of one image that find nothing."""
    return [take_turn(turns) for _ in range(number)]


# The kind


def test_the_plan_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Pinprick.plan.first = 1  # type: ignore[misc]


@pytest.mark.parametrize(("cost", "anneals_first"), [(30, False), (31, True), (torch.inf, True)])
def test_untried_kinds_come_first_anneals_in_front_where_many_units_are_needed(
    cost: float, anneals_first: bool
) -> None:
    """More than 30 of 100. All fail, so the kinds take turns in their order from then on."""
    turns, _ = turns_of([cost])
    untried = [FAST, SLOW, START] if anneals_first else [START, FAST, SLOW]
    assert take_turns(turns, 9) == untried + [START, FAST, SLOW] * 2


@pytest.mark.parametrize(("cost", "order"), [(30, [1, 3, 0, 2]), (31, [0, 2, 1, 3])])
def test_of_untried_kinds_of_one_search_the_first_comes_first(
    cost: float, order: list[int]
) -> None:
    start, fast, slow = PLAN.kinds
    turns, _ = turns_of([cost], plan=replace(PLAN, kinds=(fast, start, slow, start)))
    assert take_turns(turns, 4) == order


@pytest.mark.parametrize(("unit", "few"), [("elements", 6), ("pixels", 2)])
def test_many_units_are_more_than_a_hundredth_of_those_that_are_counted(
    unit: Literal["elements", "pixels"], few: int
) -> None:
    """Of 600 elements or 200 pixels, in the plan of the attack."""
    problem = grey(2, shape=(3, 10, 20))
    best = Best(problem.images)
    turns = Turns(problem, best, Units(unit), Pinprick.plan, eight_bit=False)
    turns.searches.clear()
    best.cost = torch.tensor([float(few), few + 1.0])
    turns.begin(torch.arange(2))
    assert searches(turns) == {"Start": [0], "Anneal": [1]}
    assert [kind.search for kind in Pinprick.plan.kinds] == ["start", "anneal", "anneal"]
    assert turns._kind.tolist() == [0, 1]


def test_an_image_that_needs_few_units_by_now_tries_starts_before_the_anneals_that_are_left() -> (
    None
):
    for to, order in ((31, [FAST, SLOW, START]), (30, [FAST, START, SLOW])):
        turns, _ = turns_of([40])
        first = take_turn(turns, to=to)
        assert [first, *take_turns(turns, 2)] == order


def test_an_untried_kind_comes_before_one_that_helped() -> None:
    turns, _ = turns_of([25])
    assert [take_turn(turns, to=to) for to in (5, 4, 3)] == [START, FAST, SLOW]


def test_the_kind_whose_last_turn_removed_the_largest_share_per_pass_comes_next() -> None:
    """Fast anneals removed most: half of the units in 160 passes, and starts a quarter in 60."""
    turns, _ = turns_of([16])
    assert [take_turn(turns, to=to) for to in (12, 6, 6)] == [START, FAST, SLOW]
    assert turns._worth[0].tolist() == pytest.approx([0.25 / 60, 0.5 / 160, -1])
    assert take_turn(turns) == START  # which fails
    assert take_turn(turns, to=5) == FAST  # a sixth, in 100 passes
    assert turns._worth[0].tolist() == pytest.approx([-1, 1 / 600, -1])
    assert take_turn(turns, to=3) == FAST  # two fifths, in 100 passes
    assert turns._worth[0].tolist() == pytest.approx([-1, 0.4 / 100, -1])


def test_a_share_per_pass_counts_and_neither_the_share_nor_the_number_of_units() -> None:
    """One image removes more units in longer turns, another one more units of many."""
    turns, _ = turns_of([16, 25])
    for row, ends in ((0, (12, 6, 5)), (1, (15, 10, 5))):
        assert [take_turn(turns, row, to=to) for to in ends] == [START, FAST, SLOW]
    shares = [[0.25 / 60, 0.5 / 160, 1 / 6 / 60], [0.4 / 60, 1 / 3 / 160, 0.5 / 80]]
    assert turns._worth.tolist() == [pytest.approx(row) for row in shares]
    assert take_turn(turns, 0) == START
    assert take_turn(turns, 0) == FAST
    assert take_turn(turns, 1) == START
    assert take_turn(turns, 1) == SLOW


def test_the_turn_that_first_fools_an_image_removed_all_units() -> None:
    turns, _ = turns_of([torch.inf])
    assert [take_turn(turns, to=to) for to in (40, 20, 19)] == [FAST, SLOW, START]
    assert turns._worth[0].tolist() == pytest.approx([0.05 / 60, 1 / 400, 0.5 / 160])
    assert take_turns(turns, 3) == [SLOW, FAST, START]


def test_of_kinds_that_are_worth_the_same_the_first_comes_next() -> None:
    turns, _ = turns_of([9, 9, 9])
    turns._worth = torch.tensor([[-2, -1, -1.0], [0.01, 0.02, 0.02], [-3, -3, -3]])
    turns.begin(torch.arange(3))
    assert turns._kind.tolist() == [FAST, FAST, START]


def test_the_kind_that_failed_least_often_in_a_row_comes_next_where_none_helped() -> None:
    turns, _ = turns_of([9, 9, 9, 9])
    turns._worth = -torch.tensor([[1.0, 1, 1], [2, 1, 2], [3, 3, 2], [2, 1, 1]])
    turns.begin(torch.arange(4))
    assert turns._kind.tolist() == [START, FAST, SLOW, FAST]
    assert searches(turns) == {"Start": [0], "Anneal": [1, 2, 3]}
    turns.searches.clear()
    turns.begin(torch.tensor([3, 0]))
    assert searches(turns) == {"Start": [0], "Anneal": [3]}


@pytest.mark.parametrize("in_trim", [False, True], ids=["search", "trim"])
def test_a_turn_that_finds_no_fewer_units_has_failed_and_one_that_does_clears_the_count(
    in_trim: bool,
) -> None:
    turns, _ = turns_of([9, 9, 9])
    taken: dict[int, list[int]] = {0: [], 1: [], 2: []}
    turns.begin(torch.arange(3))
    for row in range(3):
        taken[row].append(int(turns._kind[row]))
    while any(len(of) < 6 for of in taken.values()):
        now = next(type(search) for search in turns.searches if 1 in search.rows)
        helps = len(taken[1]) == 2 and now is (Trim if in_trim else Anneal)
        found = {0: 9.0, 1: 8.0 if helps else 9.0}  # a fast anneal helps the second image
        rows = pass_slot(turns, found)
        turns.begin(torch.tensor(rows, dtype=torch.long))
        for row in rows:
            taken[row].append(int(turns._kind[row]))
    assert taken[0][:6] == taken[2][:6] == [START, FAST, SLOW, START, FAST, SLOW]
    assert taken[1][:6] == [START, FAST, SLOW, FAST, START, FAST]


def test_failures_in_a_row_are_counted_from_the_last_success() -> None:
    turns, _ = turns_of([9, 9])
    turns._worth[:] = -torch.tensor([3.0, 2, 3])
    assert take_turn(turns, 0) == take_turn(turns, 1, to=8) == FAST
    assert turns._worth.tolist() == [[-3, -3, -3], [-3, pytest.approx(1 / 9 / 160), -3]]
    assert [take_turn(turns, 1) for _ in range(4)] == [FAST, FAST, FAST, START]
    assert turns._worth[1].tolist() == [-4, -3, -3]


def test_a_turn_that_leaves_an_image_unfooled_has_failed() -> None:
    turns, _ = turns_of([torch.inf])
    take_turns(turns, 4)
    assert turns._worth.tolist() == [[-2, -1, -1]]


def test_only_turns_that_are_over_are_noted() -> None:
    turns, _ = turns_of([9, 9], next_kinds=[START, SLOW])
    turns.begin(torch.arange(2))
    assert pass_slot(turns) == []
    assert turns._worth.tolist() == [[0.5, -1, -1], [-1, -1, 0.5]]
    assert pass_slot(turns) == [0]
    assert turns._worth.tolist() == [[-1, -1, -1], [-1, -1, 0.5]]


@pytest.mark.parametrize("finds", [False, True])
def test_the_first_turn_is_nobody_s_failure_or_success(finds: bool) -> None:
    turns, _ = first_of(2)
    assert searches(turns) == {"Start": [0, 1]}
    rows = [pass_slot(turns, {0: 20.0} if finds else None) for _ in range(5)]
    assert rows == [[], [], [], [], [0, 1]]
    assert turns._worth.isposinf().all()  # all kinds are untried


def test_nothing_begins_without_images() -> None:
    turns, _ = turns_of([9])
    turns.begin(torch.arange(0))
    assert not turns.searches


# The length


@pytest.mark.parametrize(
    ("cost", "length", "trim"),  # of 20 passes per square root; the trim is 0.4 of it, in slots
    [
        (2, 40, 20),
        (4, 40, 20),
        (5, 60, 20),
        (9, 60, 20),
        (10, 80, 40),
        (16, 80, 40),
        (17, 100, 40),
        (25, 100, 40),
        (26, 160, 60),
        (64, 160, 60),
        (65, 240, 100),
        (144, 240, 100),
        (145, 400, 160),
        (torch.inf, 400, 160),
    ],
)
def test_passes_grow_with_the_square_root_of_the_units(cost: float, length: int, trim: int) -> None:
    turns, _ = turns_of([cost], grey(1, shape=(1, 4, 4)), next_kinds=[SLOW])
    turns.begin(torch.arange(1))
    assert passes_of(turns) == {"Anneal": length - trim, "Trim": trim}


def test_each_kind_has_a_pace_and_images_of_one_search_share_it() -> None:
    """Of 16 units: 12 * 4 = 48 passes of a start, 40 * 4 and 20 * 4 of the anneals."""
    turns, _ = turns_of([16, 100, 16, 16, 16], next_kinds=[START, START, FAST, START, SLOW])
    turns.begin(torch.arange(5))
    taken = {
        type(search).__name__: list(
            zip(search.rows.tolist(), search.length.tolist(), search.trims.tolist(), strict=True)
        )
        for search in turns.searches
    }
    assert taken == {
        "Start": [(0, 40, 20), (1, 100, 60), (3, 40, 20)],
        "Anneal": [(2, 100, 60), (4, 40, 40)],
    }


def test_the_first_turn_is_of_one_length_for_all() -> None:
    turns, _ = first_of(1)
    assert passes_of(turns) == {"Start": 60, "Trim": 40}
    turns, _ = first_of(1, plan=replace(PLAN, first_trim=0))
    assert passes_of(turns) == {"Start": 100}


def test_without_trims_a_turn_is_its_search() -> None:
    plan = replace(PLAN, trim=0.0)
    for kind, passes in ((START, {"Start": 40}), (FAST, {"Anneal": 160}), (SLOW, {"Anneal": 60})):
        turns, _ = turns_of([9], next_kinds=[kind], plan=plan)
        turns.begin(torch.arange(1))
        assert passes_of(turns) == passes


def test_a_trim_goes_on_beyond_its_passes_while_it_is_not_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns, _ = turns_of([4, 4], next_kinds=[START, START])
    turns.begin(torch.arange(2))
    monkeypatch.setattr(Trim, "over", lambda search: search.rows == 1)
    assert [pass_slot(turns) for _ in range(5)] == [[], [1], [], [], []]
    assert (searches(turns), only(turns).taken.tolist()) == ({"Trim": [0]}, [80])
    monkeypatch.undo()
    assert pass_slot(turns) == [0]


def sixty(images: Tensor) -> Tensor:
    """Class 1 where at least 60 values are black; the gradient is that of ``lead``."""
    fools = (images.detach() == 0).flatten(1).sum(dim=1, keepdim=True) >= 60
    return lead(images) - 1e6 * fools * torch.tensor([1.0, 0.0])


def test_a_trim_that_removes_one_unit_in_forty_per_slot_goes_on() -> None:
    """In slots of six passes. Most of them fail, until single units are tried."""
    problem = grey(1, sixty)
    turns, best = turns_of([100], problem, next_kinds=[START])
    best.images = torch.zeros_like(best.images)
    turns.begin(torch.arange(1))
    while not isinstance(only(turns), Trim):
        pass_slot(turns)
    only(turns).length[:] = 6
    left = [100.0]
    over: list[int] = []
    while not over:
        take_passes(problem, ELEMENTS, turns.searches, 6, done=100 + 6 * len(left))
        over = turns.end_slot(1).tolist()
        left.append(best.cost.item())
    worth = [after < before * 39 / 40 for before, after in pairwise(left)]
    assert len(worth) > 2
    assert worth == [True] * (len(worth) - 1) + [False]


# Slots


def test_what_a_slot_found_is_saved_where_it_is_better() -> None:
    turns, best = turns_of([9, 9, 9], next_kinds=[START] * 3)
    turns.begin(torch.arange(3))
    start = only(turns)
    start.found.images[1:] = 0
    assert pass_slot(turns, {1: 5, 2: 12}) == []
    assert best.cost.tolist() == [9, 5, 9]
    assert best.images.flatten(1).any(dim=1).tolist() == [True, False, True]


def test_images_that_are_finished_or_refused_leave_after_their_slot() -> None:
    problem = grey(5, most=50)
    turns, _ = turns_of([9] * 5, problem, next_kinds=[START, START, START, SLOW, SLOW])
    turns.begin(torch.arange(5))
    problem.tally.refused[2] = problem.tally.refused[4] = True
    for search in turns.searches:
        search.found.cost[search.rows == 0] = 3
        search.found.cost[search.rows == 3] = 4
    turns.end_slot(3)
    assert searches(turns) == {"Start": [1], "Anneal": [3]}
    over = [pass_slot(turns) for _ in range(3)]
    assert over == [[], [1], [3]]  # and so no other turn of images 0, 2 and 4 begins


def test_nothing_goes_on_once_all_are_finished() -> None:
    turns, _ = turns_of([9, 9])
    turns.begin(torch.arange(2))
    assert pass_slot(turns, {0: 1, 1: 1}) == []
    assert not turns.searches


def test_a_trim_begins_where_the_search_ended() -> None:
    """One start found more units than the best image has, another one nothing."""
    turns, best = turns_of([9, 9], next_kinds=[START, START])
    best.images[0] = 0.25
    best.images[1] = 0.75
    turns.begin(torch.arange(2))
    only(turns).found.images[0] = 0.0
    assert pass_slot(turns, {0: 12}) == []
    trim = only(turns)
    assert isinstance(trim, Trim)
    assert trim.found.cost.tolist() == [12, 9]
    assert trim.adv[:, 0, 0, 0].tolist() == [0, 0.75]
    assert torch.equal(trim.found.images, trim.adv)
    assert best.images[:, 0, 0, 0].tolist() == [0.25, 0.75]


def test_trims_of_all_searches_are_one_and_each_image_has_its_passes() -> None:
    """Image 1 anneals; the trim of image 2 begins while that of image 0 goes on."""
    turns, _ = turns_of([30, 9, 65], next_kinds=[START, SLOW, START])
    turns.begin(torch.arange(3))
    assert searches(turns) == {"Start": [0, 2], "Anneal": [1]}
    assert [pass_slot(turns) for _ in range(2)] == [[], []]
    trim = next(search for search in turns.searches if isinstance(search, Trim))
    assert searches(turns) == {"Start": [2], "Trim": [0, 1]}
    assert (trim.taken.tolist(), trim.length.tolist()) == ([0, 0], [40, 20])
    assert pass_slot(turns) == [1]
    last = only(turns)
    assert dict(zip(last.rows.tolist(), last.taken.tolist(), strict=True)) == {0: 20, 2: 0}
    assert [pass_slot(turns) for _ in range(2)] == [[0], [2]]


def test_images_join_a_search_that_others_are_in() -> None:
    turns, _ = turns_of([9, 9], next_kinds=[FAST, SLOW])
    turns.begin(torch.tensor([1]))
    pass_slot(turns)
    turns.begin(torch.tensor([0]))
    anneal = only(turns)
    assert (anneal.rows.tolist(), anneal.taken.tolist()) == ([1, 0], [20, 0])


# What a turn consists of


class Recorded:
    """The arguments of the searches, by name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        for kind in (Start, Anneal, Trim):
            monkeypatch.setattr(turns_file, kind.__name__, self._noting(kind))

    def _noting(self, kind: type[Search]) -> type[Search]:
        calls, name = self.calls, kind.__name__

        class Noted(kind):  # type: ignore[misc, valid-type]
            def __init__(self, *given: Any, **named: Any) -> None:
                super().__init__(*given, **named)
                calls.append((name, named))

        return Noted


def test_the_first_turn_is_a_start_with_signed_steps_and_its_trim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded = Recorded(monkeypatch)
    turns, _ = first_of(1, eight_bit=True)
    assert only(turns).aims.tolist() == [-1]
    passes_of(turns)
    (start, of_start), (trim, of_trim) = recorded.calls
    assert (start, trim) == ("Start", "Trim")
    assert of_start.pop("known").tolist() == [torch.inf]
    assert of_start.pop("memory").tolist() == pytest.approx([0.95])
    assert of_start == {"signed": 9, "eight_bit": True}  # and nothing is drawn
    assert of_trim == {"eight_bit": True, "stride": 0.05}


@pytest.mark.parametrize("eight_bit", [False, True])
def test_later_starts_have_the_settings_of_their_kinds(
    monkeypatch: pytest.MonkeyPatch, eight_bit: bool
) -> None:
    other = Kind("start", pace=12, memory=0.8, temperature=0.3)
    plan = replace(PLAN, kinds=(*PLAN.kinds, other))
    turns, _ = turns_of([12, 9, 25], next_kinds=[START, 3, START], plan=plan, eight_bit=eight_bit)
    recorded = Recorded(monkeypatch)
    turns.begin(torch.arange(3))
    ((_, given),) = recorded.calls
    assert given.pop("known").tolist() == [12, 9, 25]
    assert given.pop("memory").tolist() == pytest.approx([0.9, 0.8, 0.9])
    assert given.pop("temperature").tolist() == pytest.approx([0.6, 0.3, 0.6])
    assert given == {"eight_bit": eight_bit}


def test_starts_of_a_plan_without_draws_sort_all_units(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tuple(replace(kind, temperature=0.0) for kind in PLAN.kinds)
    turns, _ = turns_of([9], plan=replace(PLAN, kinds=plain))
    recorded = Recorded(monkeypatch)
    turns.begin(torch.arange(1))
    ((_, given),) = recorded.calls
    assert given["temperature"] is None


@pytest.mark.parametrize("eight_bit", [False, True])
def test_anneals_begin_at_the_best_image_and_have_the_rates_of_their_kinds(
    monkeypatch: pytest.MonkeyPatch, eight_bit: bool
) -> None:
    turns, best = turns_of([3, 12, 12], next_kinds=[FAST, SLOW, FAST], eight_bit=eight_bit)
    recorded = Recorded(monkeypatch)
    best.images[1], best.images[2] = 0.25, 0.75
    turns.begin(torch.tensor([1, 2]))
    search = only(turns)
    assert torch.equal(search.adv, best.images[1:])
    assert search.found.cost.tolist() == [12, 12]
    ((name, given),) = recorded.calls
    assert name == "Anneal"
    assert given.pop("rate").tolist() == [0.5, 2]
    assert given == {"eight_bit": eight_bit}
    while turns.searches:
        pass_slot(turns)
    trims = [("Trim", {"eight_bit": eight_bit, "stride": 0.05})] * 2
    assert recorded.calls[1:] == trims  # of image 1, and later of image 2
    assert best.cost.tolist() == [3, 12, 12]  # only judged candidates are saved


def test_longer_starts_remember_more_and_draw_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40, 60, 160 and 240 passes; memory and temperature are stated for 60."""
    turns, _ = turns_of([9, 25, 100, 400], next_kinds=[START] * 4)
    recorded = Recorded(monkeypatch)
    turns.begin(torch.arange(4))
    ((_, given),) = recorded.calls
    assert given["memory"].tolist() == pytest.approx([0.9, 0.9, 0.9625, 0.975])
    assert given["temperature"].tolist() == pytest.approx([0.6, 0.6, 0.225, 0.15])


# Aims


def far(images: Tensor) -> Tensor:
    """Class 0 leads; class 3 takes the fewest units, then class 1, then class 2."""
    flat = images.flatten(1)
    scores = [-flat[:, :10].sum(dim=1) * slope - lag for slope, lag in ((3, 20), (1, 10), (5, 20))]
    return torch.stack([torch.zeros_like(flat[:, 0]), *scores], dim=1)


def test_starts_go_through_the_rivals_of_each_image() -> None:
    turns, _ = turns_of([9, 9], grey(2, far))
    assert turns.rank_rivals(torch.arange(2), 50) == 3
    aims = []
    for rows in ([0], [0, 1], [0, 1], [0, 1]):
        turns.searches.clear()
        turns.begin(torch.tensor(rows))
        aims.append(only(turns).aims.tolist())
    assert aims == [[3], [1, 3], [2, 1], [3, 2]]


def test_only_starts_have_an_aim_and_use_one_up() -> None:
    turns, _ = turns_of([9, 9, 9, 9], grey(4, far))
    turns.begin(torch.arange(4))
    assert only(turns).aims.tolist() == [-1] * 4  # classes are not ranked yet
    turns.searches.clear()
    turns.rank_rivals(torch.arange(4), 50)
    prefer(turns, [START, FAST, START, SLOW])
    turns.begin(torch.arange(4))
    aims = {type(search).__name__: search.aims.tolist() for search in turns.searches}
    assert aims == {"Start": [3, 3], "Anneal": [-1, -1]}
    turns.searches.clear()
    prefer(turns, [START] * 4)
    turns.begin(torch.arange(4))
    assert only(turns).aims.tolist() == [1, 3, 1, 3]


def test_a_trim_has_the_aim_of_its_search() -> None:
    turns, _ = turns_of([9, 4], grey(2, far), next_kinds=[START, SLOW])
    turns.rank_rivals(torch.arange(2), 50)
    turns.begin(torch.arange(2))
    pass_slot(turns)
    trim = only(turns)
    assert isinstance(trim, Trim)
    assert trim.aims.tolist() == [3, -1]


@pytest.mark.parametrize(("left", "passes"), [(50, 3), (3, 3), (2, 2), (0, 0)])
def test_a_ranking_takes_a_pass_per_class_and_no_more_than_are_left(left: int, passes: int) -> None:
    problem = grey(3, far)
    turns, _ = turns_of([9, 9, 1], problem)
    assert turns.rank_rivals(torch.arange(2), left) == passes
    assert problem.tally.backwards.tolist() == [passes, passes, 0]
    assert problem.tally.forwards.tolist() == [min(passes, 1), min(passes, 1), 0]


def test_images_in_a_search_are_ranked_with_those_whose_turn_is_over() -> None:
    problem = grey(3, far)
    turns, _ = turns_of([9, 9, 9], problem, next_kinds=[FAST] * 3)
    turns.begin(torch.tensor([2]))
    assert turns.rank_rivals(torch.tensor([0]), 50) == 3
    assert problem.tally.backwards.tolist() == [3, 0, 3]
    turns.searches.clear()
    prefer(turns, [START] * 3)
    turns.begin(torch.tensor([2, 0]))
    assert only(turns).aims.tolist() == [3, 3]


def test_no_classes_are_ranked_with_a_target_or_without_images_or_aims() -> None:
    problem = grey(1, lead, targeted=True)
    assert turns_of([9], problem)[0].rank_rivals(torch.arange(1), 50) == 0
    assert turns_of([1])[0].rank_rivals(torch.arange(0), 50) == 0
    without = replace(PLAN, rivals=0)
    assert turns_of([9], plan=without)[0].rank_rivals(torch.arange(1), 50) == 0
    assert not problem.tally.forwards.any()


@pytest.mark.parametrize("most", [100, 120, 400])
def test_an_attack_ranks_once_after_the_first_turn(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    calls: list[tuple[list[int], int]] = []

    def note(turns: Turns, over: Tensor, left: int) -> int:
        calls.append((over.tolist(), left))
        return ranks(turns, over, left)

    ranks = Turns.rank_rivals
    monkeypatch.setattr(Turns, "rank_rivals", note)
    Pinprick(max_forwards=most)(grey(2, far))
    assert calls == [([0, 1], most - 100)]
