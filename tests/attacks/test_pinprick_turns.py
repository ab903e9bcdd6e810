"""Which search of Pinprick comes next, and for how many passes."""

from dataclasses import FrozenInstanceError, replace
from itertools import pairwise
from typing import Any

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
START, ANNEAL, REGIONS, SWAP = range(4)  # the kinds of this plan, in their order
PLAN = Plan(
    first=100,
    dense=10,
    first_trim=40,
    first_memory=0.95,
    trim=0.4,
    rivals=9,
    kinds=(
        Kind("start", pace=12, memory=0.9, temperature=0.6, aimed=True),
        Kind("anneal", pace=20),
        Kind("start", pace=12, memory=0.8, temperature=0.6, favour=1.0),
        Kind("swap", pace=20),
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
    kind: int | None = None,
    plan: Plan = PLAN,
    eight_bit: bool = False,
) -> tuple[Turns, Best]:
    """Turns after the first one, of images that need so many units; only ``kind`` never failed."""
    turns, best = first_of(len(cost), problem, plan=plan, eight_bit=eight_bit)
    best.cost = torch.tensor(cost, dtype=torch.float32)
    turns.searches.clear()
    if kind is not None:
        turns._failures += 1
        turns._failures[:, kind] = 0
    return turns, best


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


def kinds(turns: Turns, rows: list[int]) -> list[int]:
    """The kind of turn that each of the images takes next."""
    turns.searches.clear()
    turns.begin(torch.tensor(rows), 100)
    return turns._kind[rows].tolist()


# The kind


def test_the_plan_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Pinprick.plan.first = 1  # type: ignore[misc]


def test_the_kind_that_failed_least_often_in_a_row_comes_next_and_of_equals_the_first() -> None:
    turns, _ = turns_of([9, 9, 9, 9, 9])
    turns._failures = torch.tensor(
        [[0, 0, 0, 0], [1, 0, 0, 0], [2, 1, 2, 1], [3, 3, 3, 2], [1, 1, 1, 1]]
    )
    assert kinds(turns, [0, 1, 2, 3, 4]) == [START, ANNEAL, ANNEAL, SWAP, START]
    assert searches(turns) == {"Start": [0, 4], "Anneal": [1, 2], "Trim": [3]}
    assert kinds(turns, [3, 1]) == [SWAP, ANNEAL]
    assert searches(turns) == {"Trim": [3], "Anneal": [1]}


@pytest.mark.parametrize("in_trim", [False, True], ids=["search", "trim"])
def test_a_turn_that_finds_no_fewer_units_has_failed_and_one_that_does_clears_the_count(
    in_trim: bool,
) -> None:
    turns, _ = turns_of([9, 9, 9])
    taken: dict[int, list[int]] = {0: [], 1: [], 2: []}
    turns.begin(torch.arange(3), 100)
    for row in range(3):
        taken[row].append(int(turns._kind[row]))
    while any(len(of) < 6 for of in taken.values()):
        now = next(type(search) for search in turns.searches if 1 in search.rows)
        anneals = len(taken[1]) == 2 and now is (Trim if in_trim else Anneal)
        found = {0: 9.0, 1: 8.0 if anneals else 9.0}  # annealing helps the second image
        rows = pass_slot(turns, found)
        turns.begin(torch.tensor(rows, dtype=torch.long), 120)
        for row in rows:
            taken[row].append(int(turns._kind[row]))
    assert taken[0][:6] == taken[2][:6] == [START, ANNEAL, REGIONS, SWAP, START, ANNEAL]
    assert taken[1][:6] == [START, ANNEAL, ANNEAL, REGIONS, SWAP, START]


def test_failures_in_a_row_are_counted_from_the_last_success() -> None:
    turns, _ = turns_of([9, 9])
    turns._failures[:] = torch.tensor([3, 2, 3, 3])
    turns.begin(torch.arange(2), 100)
    over = [row for _ in range(3) for row in pass_slot(turns, {1: 8})]
    assert sorted(over) == [0, 1]
    assert turns._failures.tolist() == [[3, 3, 3, 3], [3, 0, 3, 3]]


def test_the_first_turn_is_nobody_s_failure() -> None:
    turns, _ = first_of(2)
    assert searches(turns) == {"Start": [0, 1]}
    rows = [pass_slot(turns) for _ in range(5)]
    assert rows == [[], [], [], [], [0, 1]]
    assert not turns._failures.any()


def test_nothing_begins_without_images() -> None:
    turns, _ = turns_of([9])
    turns.begin(torch.arange(0), 100)
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
    turns, _ = turns_of([cost], grey(1, shape=(1, 4, 4)), kind=ANNEAL)
    turns.begin(torch.arange(1), 100)
    assert passes_of(turns) == {"Anneal": length - trim, "Trim": trim}


def test_each_kind_has_a_pace_and_images_of_one_kind_share_a_search() -> None:
    """Of 16 units: 12 * 4 = 48 passes of a start, 20 * 4 = 80 of an anneal or of swaps."""
    turns, _ = turns_of([16, 100, 16, 16, 16])
    turns._failures[2] = torch.tensor([1, 0, 0, 0])
    turns._failures[3] = torch.tensor([1, 1, 0, 1])
    turns._failures[4] = torch.tensor([1, 1, 1, 0])
    turns.begin(torch.arange(5), 100)
    taken = {
        type(search).__name__: list(
            zip(search.rows.tolist(), search.length.tolist(), search.trims.tolist(), strict=True)
        )
        for search in turns.searches
    }
    assert taken == {
        "Start": [(0, 40, 20), (1, 100, 60), (3, 40, 20)],
        "Anneal": [(2, 40, 40)],
        "Trim": [(4, 80, 0)],
    }


def test_the_first_turn_is_of_one_length_for_all() -> None:
    turns, _ = first_of(1)
    assert passes_of(turns) == {"Start": 60, "Trim": 40}
    turns, _ = first_of(1, plan=replace(PLAN, first_trim=0))
    assert passes_of(turns) == {"Start": 100}


def test_without_trims_a_turn_is_its_search_and_swaps_stay() -> None:
    plan = replace(PLAN, trim=0.0)
    for kind, passes in ((ANNEAL, {"Anneal": 60}), (SWAP, {"Trim": 60})):
        turns, _ = turns_of([9], kind=kind, plan=plan)
        turns.begin(torch.arange(1), 100)
        assert passes_of(turns) == passes


def test_a_trim_goes_on_beyond_its_passes_while_it_is_not_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns, _ = turns_of([4, 4], kind=SWAP)
    turns.begin(torch.arange(2), 100)
    monkeypatch.setattr(Trim, "over", lambda search: search.rows == 1)
    assert [pass_slot(turns) for _ in range(4)] == [[1], [], [], []]
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
    turns, best = turns_of([100], problem, kind=SWAP)
    best.images = torch.zeros_like(best.images)
    turns.begin(torch.arange(1), 100)
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
    turns, best = turns_of([9, 9, 9], kind=START)
    turns.begin(torch.arange(3), 100)
    start = only(turns)
    start.found.images[1:] = 0
    assert pass_slot(turns, {1: 5, 2: 12}) == []
    assert best.cost.tolist() == [9, 5, 9]
    assert best.images.flatten(1).any(dim=1).tolist() == [True, False, True]


def test_images_that_are_finished_or_refused_leave_after_their_slot() -> None:
    problem = grey(5, most=50)
    turns, _ = turns_of([9, 9, 9, 9, 9], problem)
    turns._failures[3] = torch.tensor([1, 0, 0, 0])
    turns._failures[4] = torch.tensor([1, 1, 1, 0])
    turns.begin(torch.arange(5), 100)
    problem.tally.refused[2] = problem.tally.refused[4] = True
    for search in turns.searches:
        search.found.cost[search.rows == 0] = 3
        search.found.cost[search.rows == 3] = 4
    turns.end_slot(3)
    assert searches(turns) == {"Start": [1], "Anneal": [3]}
    over = [row for _ in range(3) for row in pass_slot(turns)]
    assert 0 not in over  # and so no other turn begins
    assert {2, 4}.isdisjoint(over)


def test_nothing_goes_on_once_all_are_finished() -> None:
    turns, _ = turns_of([9, 9])
    turns.begin(torch.arange(2), 100)
    assert pass_slot(turns, {0: 1, 1: 1}) == []
    assert not turns.searches


def test_a_trim_begins_where_the_search_ended() -> None:
    """One start found more units than the best image has, another one nothing."""
    turns, best = turns_of([9, 9], kind=START)
    best.images[0] = 0.25
    best.images[1] = 0.75
    turns.begin(torch.arange(2), 100)
    only(turns).found.images[0] = 0.0
    assert pass_slot(turns, {0: 12}) == []
    trim = only(turns)
    assert isinstance(trim, Trim)
    assert trim.found.cost.tolist() == [12, 9]
    assert trim.adv[:, 0, 0, 0].tolist() == [0, 0.75]
    assert torch.equal(trim.found.images, trim.adv)
    assert best.images[:, 0, 0, 0].tolist() == [0.25, 0.75]


def test_trims_of_all_searches_are_one_and_each_image_has_its_passes() -> None:
    """The swaps begin first, then the trim of the start, then that of the anneal."""
    turns, _ = turns_of([9, 9, 9])
    turns._failures[1] = torch.tensor([1, 0, 0, 0])
    turns._failures[2] = torch.tensor([1, 1, 1, 0])
    turns.begin(torch.arange(3), 100)
    assert searches(turns) == {"Start": [0], "Anneal": [1], "Trim": [2]}
    pass_slot(turns)
    assert searches(turns) == {"Trim": [0, 2], "Anneal": [1]}
    trim = next(search for search in turns.searches if isinstance(search, Trim))
    assert (trim.taken.tolist(), trim.length.tolist()) == ([0, 20], [20, 60])
    assert pass_slot(turns) == [0]
    last = only(turns)
    assert dict(zip(last.rows.tolist(), last.taken.tolist(), strict=True)) == {1: 0, 2: 40}
    assert sorted(pass_slot(turns)) == [1, 2]


def test_images_join_a_search_that_others_are_in() -> None:
    turns, _ = turns_of([9, 9], kind=ANNEAL)
    turns.begin(torch.tensor([1]), 100)
    pass_slot(turns)
    turns.begin(torch.tensor([0]), 120)
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
    assert of_start == {"dense": 10, "eight_bit": True}  # neither draws nor regions
    assert of_trim == {"eight_bit": True}


@pytest.mark.parametrize("eight_bit", [False, True])
def test_later_starts_have_the_settings_of_their_kinds(
    monkeypatch: pytest.MonkeyPatch, eight_bit: bool
) -> None:
    turns, _ = turns_of([12, 9, 25], eight_bit=eight_bit)
    recorded = Recorded(monkeypatch)
    turns._failures[1] = torch.tensor([1, 1, 0, 1])
    turns.begin(torch.arange(3), 129)
    ((_, given),) = recorded.calls
    assert given.pop("known").tolist() == [12, 9, 25]
    assert given.pop("memory").tolist() == pytest.approx([0.9, 0.8, 0.9])
    assert given.pop("temperature").tolist() == pytest.approx([0.6, 0.6, 0.6])
    assert given.pop("favour").any(dim=1).tolist() == [False, True, False]
    assert given == {"eight_bit": eight_bit}


def test_starts_of_a_plan_without_draws_and_regions_sort_all_units(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = tuple(replace(kind, temperature=0.0, favour=0.0) for kind in PLAN.kinds)
    turns, _ = turns_of([9], plan=replace(PLAN, kinds=plain))
    recorded = Recorded(monkeypatch)
    turns.begin(torch.arange(1), 100)
    ((_, given),) = recorded.calls
    assert given["temperature"] is None
    assert given["favour"] is None


def test_regions_differ_from_turn_to_turn_and_from_image_to_image(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns, _ = turns_of([9, 9], kind=REGIONS)
    recorded = Recorded(monkeypatch)
    for done in (120, 180):
        turns.searches.clear()
        turns.begin(torch.arange(2), done)
    (first, other), (later, _) = (given["favour"] for _, given in recorded.calls)
    assert not torch.equal(first, other)
    assert not torch.equal(first, later)


@pytest.mark.parametrize("eight_bit", [False, True])
@pytest.mark.parametrize(("kind", "names"), [(ANNEAL, ["Anneal", "Trim"]), (SWAP, ["Trim"])])
def test_anneals_and_swaps_begin_at_the_best_image(
    monkeypatch: pytest.MonkeyPatch, kind: int, names: list[str], eight_bit: bool
) -> None:
    turns, best = turns_of([3, 12], kind=kind, eight_bit=eight_bit)
    recorded = Recorded(monkeypatch)
    best.images[1] = 0.25
    turns.begin(torch.tensor([1]), 129)
    search = only(turns)
    assert torch.equal(search.adv, best.images[1:])
    assert search.found.cost.tolist() == [12]
    passes_of(turns)
    assert [name for name, _ in recorded.calls] == names
    assert all(given == {"eight_bit": eight_bit} for _, given in recorded.calls)
    assert best.cost.tolist() == [3, 12]  # only judged candidates are saved


def test_longer_starts_remember_more_and_draw_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40, 60, 160 and 240 passes; memory and temperature are stated for 60."""
    turns, _ = turns_of([9, 25, 100, 400])
    recorded = Recorded(monkeypatch)
    turns.begin(torch.arange(4), 100)
    ((_, given),) = recorded.calls
    assert given["memory"].tolist() == pytest.approx([0.9, 0.9, 0.9625, 0.975])
    assert given["temperature"].tolist() == pytest.approx([0.6, 0.6, 0.225, 0.15])


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
        turns.searches.clear()
        turns.begin(torch.tensor(rows), 100)
        aims.append(only(turns).aims.tolist())
    assert aims == [[3], [1, 3], [2, 1], [3, 2]]


def test_only_aimed_kinds_have_an_aim_and_use_one_up() -> None:
    turns, _ = turns_of([9, 9, 9, 9], grey(4, far))
    turns.begin(torch.arange(4), 100)
    assert only(turns).aims.tolist() == [-1] * 4  # classes are not ranked yet
    turns.searches.clear()
    turns.rank_rivals(torch.arange(4), 50)
    turns._failures = torch.tensor([[0, 0, 0, 0], [1, 1, 0, 1], [1, 0, 0, 0], [1, 1, 1, 0]])
    turns.begin(torch.arange(4), 100)
    aims = {type(search).__name__: search.aims.tolist() for search in turns.searches}
    assert aims == {"Start": [3, -1], "Anneal": [-1], "Trim": [-1]}
    turns.searches.clear()
    turns._failures.zero_()
    turns.begin(torch.arange(4), 100)
    assert only(turns).aims.tolist() == [1, 3, 3, 3]


def test_a_trim_has_the_aim_of_its_start() -> None:
    turns, _ = turns_of([9, 9], grey(2, far))
    turns.rank_rivals(torch.arange(2), 50)
    turns._failures[1] = torch.tensor([1, 1, 0, 1])
    turns.begin(torch.arange(2), 100)
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
    turns, _ = turns_of([9, 9, 9], problem, kind=SWAP)
    turns.begin(torch.tensor([2]), 100)
    assert turns.rank_rivals(torch.tensor([0]), 50) == 3
    assert problem.tally.backwards.tolist() == [3, 0, 3]
    turns.searches.clear()
    turns._failures.zero_()
    turns.begin(torch.tensor([2, 0]), 120)
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
