"""Trim gives nothing up, and leaves no unit that is not needed."""

from collections.abc import Callable
from typing import Literal

import pytest
import torch
from drive_search import ELEMENTS, assert_same, cut_and_joined, drive, each_pass
from torch import Tensor

from parts.long_results import (
    SHAPE,
    as_found,
    guesses,
    noisy,
    problem_of,
    shortened_with_and_without_company,
)
from parts.trims import all_changed, changed_units, judge, run, trim_of
from pinprick import Classifier, Goal, Problem, Streams
from pinprick.attacks.pinprick import trim as trim_file
from pinprick.attacks.pinprick.lockstep import Answer
from pinprick.attacks.pinprick.trim import Trim
from pinprick.oracle import exact_images, exact_linear, fewest_elements, fewest_pixels, sure_images
from pinprick.parts.best import Best
from pinprick.parts.largest import find_largest
from pinprick.parts.remove_units import UnitRemoval
from pinprick.parts.units import Units


@pytest.mark.parametrize("stride", [0.0, 0.1])
@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_reaches_the_optimum_from_any_superset_of_it(
    unit: Literal["elements", "pixels"], stride: float
) -> None:
    model, units = exact_linear(2, SHAPE), Units(unit)
    images = sure_images(model, exact_images(12, SHAPE))
    labels = guesses(model, images)
    goal = Goal(labels)
    fewest = (fewest_elements if unit == "elements" else fewest_pixels)(model, images, goal)
    assert fewest.isfinite().all()
    problem = problem_of(model, images, goal)
    steer = problem.gradient(images, goal.margin)
    gains = units.total(steer * (images - (steer < 0).double()))
    rank = gains.argsort(dim=1, descending=True).argsort(dim=1)
    needed = units.spread(rank < fewest.unsqueeze(1), images)
    some = exact_images(12, SHAPE, seed=8)
    for extra in (some, 1 - some):  # other units at random, to whatever value they like
        adv = torch.where(extra > 0.5, extra, images)
        adv = torch.where(needed, (steer < 0).double(), adv)
        found = as_found(adv, images, units)
        assert (found.cost > fewest).all()
        adversarial = guesses(model, adv) != labels
        assert adversarial.sum() >= 6
        rows = adversarial.nonzero().squeeze(1)
        shorter = found[rows]
        run(problem[rows], shorter, units, 40, stride=stride)
        assert torch.equal(shorter.cost.double(), fewest[rows])


@pytest.mark.parametrize("stride", [0.0, 0.1])
@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_what_is_kept_meets_the_goal_and_never_grows(
    curved: Classifier,
    images: Tensor,
    curved_labels: Tensor,
    unit: Literal["elements", "pixels"],
    targeted: bool,
    stride: float,
) -> None:
    units = Units(unit)
    fooled, adv = noisy(curved, images, curved_labels)
    assert fooled.sum() >= 4
    images, adv, labels = images[fooled], adv[fooled], curved_labels[fooled]
    goal = Goal(labels, guesses(curved, adv) if targeted else None)
    problem, found = problem_of(curved, images, goal), as_found(adv, images, units)
    cost = before = found.cost
    for _ in each_pass(problem, trim_of(problem, found, 40, units, stride=stride), units, 40):
        assert (found.cost <= cost).all()
        cost = found.cost
        with torch.no_grad():
            assert goal.met(curved(found.images)).all()
        assert torch.equal(found.cost, units.count(found.images, images))
    assert (found.cost < before).all()


def badly_chosen() -> tuple[Problem, Best]:
    """At the wrong units of a linear model: each is needed, though others would do better."""
    model = exact_linear(2, SHAPE)
    images = sure_images(model, exact_images(12, SHAPE))
    labels = guesses(model, images)
    problem = problem_of(model, images, Goal(labels))
    steer = problem.gradient(images, problem.goal.margin)
    edge = (steer < 0).double()
    gains = (steer * (images - edge)).flatten(1)
    order = gains.argsort(dim=1)[:, 30:]  # all but the worst; the best come last
    worse = torch.zeros_like(gains, dtype=torch.bool).scatter(1, order[:, :40], True)
    adv = torch.where(worse.view_as(images), edge, images)
    rows = (guesses(model, adv) != labels).nonzero().squeeze(1)
    assert len(rows) >= 3
    fresh = problem_of(model, images[rows], Goal(labels[rows]))
    return fresh, as_found(adv, images, ELEMENTS)[rows]


@pytest.mark.parametrize("stride", [0.0, 0.1])
def test_swapping_goes_on_where_removing_ends(stride: float) -> None:
    problem, found = badly_chosen()
    removal = UnitRemoval(problem, found[torch.arange(len(problem))], ELEMENTS)
    for _ in range(80):
        removal.step()
    assert not removal.open.any()
    run(problem, found, ELEMENTS, 80, stride=stride)
    assert (found.cost < removal.found.cost).all()


def test_a_single_unit_is_left_as_it_is() -> None:
    def is_dark(images: Tensor) -> Tensor:
        first = images.flatten(1)[:, :1]
        return torch.cat((first - 0.5, 0.5 - first), dim=1)

    images = torch.full((2, 1, 2, 2), 0.75)
    problem = problem_of(Classifier(is_dark), images, Goal(torch.tensor([0, 0])))
    adv = images.clone()
    adv[:, 0, 0, 0] = 0.125
    found = as_found(adv, images, ELEMENTS)
    run(problem, found, ELEMENTS, 5)
    assert torch.equal(found.images, adv)
    assert found.cost.tolist() == [1, 1]


def test_each_pass_is_one_forward_and_one_backward(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    fooled, adv = noisy(curved, images, curved_labels)
    problem = problem_of(curved, images, Goal(curved_labels))
    run(problem[fooled], as_found(adv, images, Units("pixels"))[fooled], Units("pixels"), 9)
    assert torch.equal(problem.tally.forwards, 9 * fooled)
    assert torch.equal(problem.tally.backwards, 9 * fooled)


@pytest.mark.parametrize("stride", [0.0, 0.1])
def test_where_units_are_worth_the_same_company_makes_no_difference(stride: float) -> None:
    before, beside, alone = shortened_with_and_without_company(
        lambda part, found, units: run(part, found, units, 60, stride=stride)
    )
    assert torch.equal(beside, alone)
    assert (beside != before).any()


@pytest.mark.parametrize("stride", [0.0, 0.1])
def test_images_can_leave_and_join_between_slots(stride: float) -> None:
    """While images 0 and 2 swap units, image 3 removes some and image 4 takes signed steps."""
    problem, before = badly_chosen()
    images, lengths = problem.images, torch.tensor([40, 60, 100, 40, 100])
    edge = (problem.gradient(images, problem.goal.margin) < 0).double()
    before.images[3] = torch.where(edge[3] == 0, edge[3], before.images[3])
    before.cost[3] = ELEMENTS.count(before.images, images)[3]
    before.images[4], before.cost[4] = images[4], torch.inf

    def begin(rows: Tensor) -> Trim:
        aims = torch.full_like(rows, -1)
        return Trim(images[rows], ELEMENTS, rows, aims, before[rows], lengths[rows], stride=stride)

    assert_same(*cut_and_joined(problem, begin))


# By hand: images of eight values, all of them changed


def test_half_as_many_are_removed_until_each_was_found_to_be_needed() -> None:
    model = judge(lambda on: on.all(dim=1), [1.0] * 8)
    seen = changed_units(model, 8, 12)
    assert seen[:3] == [[*range(8)], [4, 5, 6, 7], [2, 3, 4, 5, 6, 7]]
    singles = [[unit for unit in range(8) if unit != removed] for removed in range(8)]
    assert seen[3:11] == singles
    assert len(seen[11]) == 7  # one of the seven swapped for the one that was removed last
    assert 7 in seen[11]


def test_twice_as_many_are_removed_once_that_succeeds_and_one_stays() -> None:
    model = judge(lambda on: on[:, 7], [1.0] * 7 + [2.0])
    assert changed_units(model, 8, 3) == [[*range(8)], [4, 5, 6, 7], [7]]


def test_no_more_are_removed_than_the_margin_should_allow() -> None:
    model = judge(lambda on: on.any(dim=1), [30.0, 40.0, 50.0, 60.0, 60.0, 60.0, 60.0, 60.0])
    assert changed_units(model, 8, 2)[1] == [2, 3, 4, 5, 6, 7]  # 30 + 40 < 100 < 30 + 40 + 50


def test_a_unit_that_is_needed_stays_and_the_next_is_tried() -> None:
    model = judge(lambda on: on[:, 0], [1.0, 2.0, 3.0, 4.0])
    assert changed_units(model, 4, 5) == [[0, 1, 2, 3], [2, 3], [1, 2, 3], [0, 2, 3], [0]]


@pytest.mark.parametrize("stride", [0.0, 0.1])
def test_what_does_not_fool_yet_takes_shorter_and_shorter_signed_steps(stride: float) -> None:
    model = judge(lambda on: ~on.any(dim=1), [-1.0] * 4)  # all values must be zero
    images = torch.full((1, 1, 1, 4), 0.5)
    problem = problem_of(model, images, Goal(torch.tensor([0])))
    found = Best(images)
    candidates = run(problem, found, ELEMENTS, 4, stride=stride)
    values = [adv.unique().tolist() for adv in candidates]
    assert values == [pytest.approx([value]) for value in (0.5, 0.3, 0.15, 0.05)]
    assert found.cost.isinf().all()
    run(problem, found, ELEMENTS, 8, stride=stride)  # by 0.2, 0.175, 0.15: there
    assert found.cost.tolist() == [4]


def test_an_image_that_does_not_fool_costs_the_others_no_swaps_and_no_long_sort(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has nothing to swap. The other image has 3 of 8 units to remove."""
    problem, found = all_changed(judge(lambda on: on.any(dim=1), [0.0] * 8), 8, count=2)
    found.images[0], found.cost[0] = problem.images[0], torch.inf
    found.images[1, ..., 3:], found.cost[1] = 0, 3
    bounds: list[int] = []

    def note(keys: Tensor, count: Tensor, most: int, **rest: float) -> tuple[Tensor, Tensor]:
        bounds.append(most)
        return find_largest(keys, count, most, **rest)

    monkeypatch.setattr(trim_file, "find_largest", note)
    monkeypatch.setattr(Streams, "_bits", lambda *_: pytest.fail("a swap was drawn"))
    slot = (trim := trim_of(problem, found, 20)).slot(problem, ELEMENTS, 20, 0)
    for now in range(2):
        met = torch.tensor([False, now == 0])
        cost = ELEMENTS.count(trim.adv, problem.images)
        slot(Answer(torch.tensor([1.0, -1.0]), met, cost, torch.ones_like(trim.adv)), now)
    assert bounds == [3, 3]
    assert trim.found.cost.tolist() == [torch.inf, 3]


def test_signed_steps_keep_to_the_grid() -> None:
    model = judge(lambda on: ~on.any(dim=1), [-1.0] * 4)
    images = torch.full((1, 1, 1, 4), 102 / 255)
    problem = problem_of(model, images, Goal(torch.tensor([0])))
    search = trim_of(problem, Best(images), 7, eight_bit=True)
    candidates = drive(problem, search).candidates
    assert len(candidates[1].unique()) == 1
    for adv in candidates:
        assert torch.equal((adv * 255).round() / 255, adv)


# Beyond its passes


def after_its_passes(
    fools: Callable[[Tensor], Tensor], number: int, passes: int
) -> tuple[list[bool], list[float]]:
    """Whether a trim of so many units is over after its passes, and how many are left."""
    problem, found = all_changed(judge(fools, [1.0] * number), number)
    search = trim_of(problem, found, passes)
    drive(problem, search)
    return search.over().tolist(), found.cost.tolist()


@pytest.mark.parametrize(("needed", "over"), [(157, True), (155, False)])
def test_a_trim_goes_on_while_it_removes_more_than_one_unit_in_40(needed: int, over: bool) -> None:
    """Of 160 it removes 80, 40, 20, 10 in vain, then 5, or 2 and 1; it has not tried all."""
    assert after_its_passes(lambda on: on.sum(dim=1) >= needed, 160, 10) == ([over], [needed])


@pytest.mark.parametrize(("passes", "over"), [(3, False), (4, True)])
def test_a_trim_that_tried_all_units_is_over(passes: int, over: bool) -> None:
    """Two of four go at once, then each of the others in vain."""
    assert after_its_passes(lambda on: on[:, 2] & on[:, 3], 4, passes) == ([over], [2])


def test_a_trim_has_its_passes_though_it_removes_nothing() -> None:
    problem, found = all_changed(judge(lambda on: on.all(dim=1), [1.0] * 4), 4)
    search = trim_of(problem, found, 40)
    for done, over in ((0, False), (20, True)):
        list(each_pass(problem, search, ELEMENTS, 20, done))
        assert search.over().tolist() == [over]


def test_it_is_the_last_slot_that_counts() -> None:
    """40 of 80 units go in the first, 39 in the second, none in the third."""
    problem, found = all_changed(judge(lambda on: on.any(dim=1), [1.0] * 80), 80)
    search = trim_of(problem, found, 2)
    for done, left, over in ((0, 40, False), (2, 1, False), (4, 1, True)):
        list(each_pass(problem, search, ELEMENTS, 2, done))
        assert found.cost.tolist() == [left]
        assert search.over().tolist() == [over]


def test_each_image_goes_on_by_itself() -> None:
    """All four values are needed, or any of them; nothing fools the third image."""

    def fools(on: Tensor) -> Tensor:
        return torch.stack((on[0].all(), on[1].any(), torch.tensor(False)))

    problem, found = all_changed(judge(fools, [1.0] * 4), 4, count=3)
    found.images[2], found.cost[2] = problem.images[2], torch.inf
    search = trim_of(problem, found, 2)
    drive(problem, search)
    assert found.cost.tolist() == [4, 2, torch.inf]
    assert search.over().tolist() == [True, False, True]


def test_an_image_that_begins_to_fool_goes_on() -> None:
    model = judge(lambda on: ~on.any(dim=1), [-1.0] * 4)  # all values must be zero
    images = torch.full((1, 1, 1, 4), 0.25)
    problem = problem_of(model, images, Goal(torch.tensor([0])))
    search = trim_of(problem, Best(images), 3)
    drive(problem, search)
    assert search.found.cost.tolist() == [4]
    assert not search.over()
