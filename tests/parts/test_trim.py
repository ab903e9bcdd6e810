"""Trim gives nothing up, leaves no unit that is not needed, and swaps the others."""

import math
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
from pinprick import Classifier, Goal, Problem, Streams
from pinprick.attacks.pinprick.lockstep import Answer
from pinprick.attacks.pinprick.trim import Trim
from pinprick.oracle import exact_images, exact_linear, fewest_elements, fewest_pixels, sure_images
from pinprick.parts.best import Best
from pinprick.parts.remove_units import UnitRemoval
from pinprick.parts.units import Units


def trim_of(
    problem: Problem,
    found: Best,
    length: int,
    units: Units = ELEMENTS,
    *,
    eight_bit: bool = False,
    stride: float = 0.0,
) -> Trim:
    """A trim of all images of a problem, which aims at no class."""
    rows = torch.arange(len(problem))
    aims, lengths = torch.full_like(rows, -1), torch.full_like(rows, length)
    images = problem.images
    return Trim(images, units, rows, aims, found, lengths, eight_bit=eight_bit, stride=stride)


def run(
    problem: Problem, found: Best, units: Units, length: int, *, stride: float = 0.0
) -> list[Tensor]:
    """Trim what was found, in place; returns the candidates."""
    return drive(problem, trim_of(problem, found, length, units, stride=stride), units).candidates


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


def judge(fools: Callable[[Tensor], Tensor], slopes: list[float]) -> Classifier:
    """The margin is -100 where the values fool and 100 elsewhere, with these slopes."""

    def model(images: Tensor) -> Tensor:
        flat = images.flatten(1)
        lead = torch.where(fools(flat.detach() > 0), -100.0, 100.0)
        small = (flat - flat.detach()) @ torch.tensor(slopes)
        return torch.stack((lead - small, torch.zeros_like(lead)), dim=1)

    return Classifier(model)


def all_changed(model: Classifier, number: int, count: int = 1) -> tuple[Problem, Best]:
    """Images of so many values, and what was found: all of them changed."""
    images = torch.zeros(count, 1, 1, number)
    problem = problem_of(model, images, Goal(torch.zeros(count, dtype=torch.long)))
    return problem, as_found(images + 1, images, ELEMENTS)


def changed_units(model: Classifier, number: int, steps: int) -> list[list[int]]:
    """The units that are changed in each candidate, from all of them on."""
    candidates = run(*all_changed(model, number), ELEMENTS, steps)
    return [adv.flatten().nonzero().squeeze(1).tolist() for adv in candidates]


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


def test_signed_steps_keep_to_the_grid() -> None:
    model = judge(lambda on: ~on.any(dim=1), [-1.0] * 4)
    images = torch.full((1, 1, 1, 4), 102 / 255)
    problem = problem_of(model, images, Goal(torch.tensor([0])))
    search = trim_of(problem, Best(images), 7, eight_bit=True)
    candidates = drive(problem, search).candidates
    assert len(candidates[1].unique()) == 1
    for adv in candidates:
        assert torch.equal((adv * 255).round() / 255, adv)


# Told by hand: a trim that is sent answers and not a model's


class Told:
    """A trim of one image for many passes, of which the first answer is of what was found."""

    def __init__(
        self,
        adv: Tensor,
        images: Tensor,
        units: Units = ELEMENTS,
        *,
        allowed: Tensor | None = None,
        length: int = 10**6,
        eight_bit: bool = False,
        stride: float = 0.0,
    ) -> None:
        self.images, self.units = images, units
        self.problem = Problem(
            Classifier(lambda batch: batch.flatten(1)[:, :2]),
            images,
            Goal(torch.tensor([0])),
            Streams(0, torch.arange(1)),
            allowed=allowed,
        )
        found = as_found(adv, images, units)
        self.search = trim_of(
            self.problem, found, length, units, eight_bit=eight_bit, stride=stride
        )
        self.slot = self.search.slot(self.problem, units, 10**4, 0)
        self.now = 0

    def tell(self, margin: float, grad: Tensor, *, met: bool = False) -> Tensor:
        """Answer for the candidate; returns the next one."""
        count = self.units.count(self.search.adv, self.images)
        told = torch.tensor([margin]), torch.tensor([met]), count, grad.view_as(self.images)
        self.slot(Answer(*told), self.now)
        self.now += 1
        return self.search.adv

    def removed(self) -> list[int]:
        """The units of the best that are clean in the candidate."""
        gone = self.units.changed(self.search.adv, self.search.found.images)
        gone &= ~self.units.changed(self.search.adv, self.images)
        return gone[0].nonzero().squeeze(1).tolist()

    @property
    def swaps(self) -> bool:
        """Whether the candidate changes units that the best does not."""
        best, adv = self.search.found.images, self.search.adv
        new = self.units.changed(adv, self.images) & ~self.units.changed(best, self.images)
        return bool(new.any())


def black(number: int, *changed: int) -> Told:
    """A black image of so many units, of which some are white."""
    images = torch.zeros(1, 1, 1, number)
    adv = images.clone()
    adv[..., list(changed)] = 1
    return Told(adv, images)


def test_after_a_swap_that_fools_all_units_are_tried_again() -> None:
    trim, grad = black(4, 0, 1, 2), -torch.ones(4)
    trim.tell(-100, grad, met=True)
    for unit in range(3):
        assert trim.removed() == [unit]
        assert not trim.swaps
        trim.tell(100, grad)
    assert trim.swaps
    trim.tell(100, grad)
    assert trim.swaps
    trim.search.adv = torch.tensor([1.0, 0, 0, 1]).view_as(trim.images)  # if that is the swap
    trim.tell(-100, grad, met=True)
    assert trim.search.found.cost.tolist() == [2]
    assert trim.removed() == [0]
    assert not trim.swaps


def test_gradients_count_by_their_size() -> None:
    """200, 400, 600, 800 and 1, 0, 0, 0: the first is of least use still, at 100.5."""
    trim = black(4, 0, 1, 2, 3)
    trim.tell(-(10**4), -torch.tensor([200.0, 400, 600, 800]), met=True)
    assert trim.removed() == [0, 1]
    trim.tell(10**4, -torch.tensor([1.0, 0, 0, 0]))
    assert trim.removed() == [0]
    trim.tell(10**4, -torch.tensor([1.0, 0, 0, 0]))
    assert trim.removed() == [1]  # 133, 200, 267


def test_gradients_count_the_same_until_the_memory_is_full() -> None:
    trim = black(8, *range(8))
    for step in range(7):
        grad = torch.zeros(8)
        grad[step] = 3
        trim.tell(-1, grad)
        if step == 4:
            torch.testing.assert_close(trim.search._mean.flatten(), 3 * at_first(8, [0.2] * 5))
    weights = at_first(8, [0.128] * 5 + [0.16, 0.2])
    torch.testing.assert_close(trim.search._mean.flatten(), 3 * weights)


def at_first(number: int, values: list[float]) -> Tensor:
    """So many values, these in front and zeros behind them."""
    return torch.tensor(values + [0.0] * (number - len(values)))


# Steps of the values of changed units


def stepping(
    found: list[float], *, clean: float = 0.25, length: int = 10**6, eight_bit: bool = False
) -> Told:
    """A trim whose values take steps of 0.1 at first."""
    adv = torch.tensor(found).view(1, 1, 1, -1)
    images = torch.full_like(adv, clean)
    return Told(adv, images, length=length, eight_bit=eight_bit, stride=0.1)


def values_of(adv: Tensor) -> list[float]:
    values: list[float] = adv.flatten().tolist()
    return values


def test_changed_values_step_against_the_gradient_while_others_are_removed() -> None:
    """The third is of least use and goes. The fourth has no gradient, the fifth is clean."""
    trim = stepping([0.5, 0.5, 0.75, 0.5, 0.25, 0.96, 0.05])
    trim.search._limit[:] = 1
    adv = trim.tell(-100, torch.tensor([-1, -50, 1e-3, 0, -70, -80, 90]), met=True)
    assert trim.removed() == [2]
    assert values_of(adv) == pytest.approx([0.6, 0.6, 0.25, 0.5, 0.25, 1, 0])


def test_steps_begin_at_the_best_image_and_are_kept_where_it_fools() -> None:
    trim = stepping([0.5] * 4)
    first = trim.tell(-100, -torch.tensor([1.0, 2, 3, 4]), met=True)
    assert values_of(first) == pytest.approx([0.25, 0.25, 0.6, 0.6])
    vain = trim.tell(100, -torch.tensor([1.0, 2, 3, 4]))
    assert values_of(vain) == pytest.approx([0.25, 0.6, 0.6, 0.6])  # 0.5 and a step, not 0.7
    kept = trim.tell(-100, -torch.tensor([1.0, 2, 3, 4]), met=True)
    assert values_of(trim.search.found.images) == values_of(vain)
    assert trim.search.found.cost.tolist() == [3]
    assert values_of(kept) == pytest.approx([0.25, 0.25, 0.25, 0.7])  # twice as many go


def test_steps_follow_the_running_mean_of_the_gradients() -> None:
    """The second gradient points the other way: less than the first in one value alone."""
    trim = stepping([0.5, 0.5, 0.5])
    trim.tell(-100, -torch.tensor([5.0, 5, 5]), met=True)
    adv = trim.tell(100, torch.tensor([1.0, 6, 4]))
    assert trim.removed() == [1]  # the mean is -2, 0.5, -0.5
    assert values_of(adv) == pytest.approx([0.6, 0.25, 0.6])
    adv = trim.tell(100, torch.tensor([1.0, 6, 4]))
    assert trim.removed() == [2]  # now -1, 7/3, 1; the second stays changed and turns back
    assert values_of(adv) == pytest.approx([0.6, 0.4, 0.25])


@pytest.mark.parametrize(
    ("taken", "size"), [(0, 0.1), (25, 0.075), (50, 0.05), (90, 0.01), (100, 0), (130, 0)]
)
def test_steps_grow_shorter_along_a_trim(taken: int, size: float) -> None:
    """Of 100 passes, and beyond them."""
    trim = stepping([0.5, 0.75], length=100)
    trim.search.taken = torch.tensor([taken])
    trim.slot = trim.search.slot(trim.problem, ELEMENTS, 10, taken)
    adv = trim.tell(-100, torch.tensor([-1.0, 20]), met=True)
    assert values_of(adv) == pytest.approx([0.5 + size, 0.25])


def test_each_image_has_steps_of_its_own_size() -> None:
    """The first one has no passes left, the second half of them."""
    images = torch.full((3, 1, 1, 2), 0.25)
    problem = problem_of(
        Classifier(lambda batch: batch.flatten(1)[:, :2]), images, Goal(torch.zeros(3).long())
    )
    search = trim_of(problem, as_found(images + 0.25, images, ELEMENTS), 100, stride=0.1)
    search.taken = torch.tensor([100, 50, 0])
    slot = search.slot(problem, ELEMENTS, 10, 0)
    grad = -torch.tensor([2.0, 1.0]).expand(3, 2).reshape(3, 1, 1, 2)
    slot(Answer(torch.full((3,), -9.0), torch.tensor([True] * 3), search.found.cost, grad), 0)
    assert search.adv[:, 0, 0, 0].tolist() == pytest.approx([0.5, 0.55, 0.6])
    assert search.adv[:, 0, 0, 1].tolist() == [0.25] * 3


def test_without_a_stride_values_stay_as_they_are() -> None:
    adv = torch.tensor([0.5, 0.75, 1.0, 0.125]).view(1, 1, 1, 4)
    trim = Told(adv, torch.full_like(adv, 0.25))
    for margin in (-100.0, 100.0, 100.0, -100.0, 100.0):
        after = trim.tell(margin, -torch.tensor([1.0, 2, 3, 4]), met=margin < 0)
        assert not trim.swaps
        stays = after != trim.images
        assert stays.any()
        assert torch.equal(after[stays], adv[stays])


def test_a_value_that_would_leave_the_box_stops_at_its_edge() -> None:
    trim = stepping([0.95, 0.05, 0.5])
    trim.search._limit[:] = 1
    adv = trim.tell(-100, torch.tensor([-9.0, 9.0, 8.0]), met=True)
    assert trim.removed() == [2]
    assert values_of(adv) == [1, 0, 0.25]


def test_a_pixel_steps_in_all_channels_that_may_change() -> None:
    """Two changed pixels and a clean one; the last channel of the first may not change."""
    images = torch.full((1, 3, 1, 3), 0.25)
    adv, allowed = images.clone(), torch.ones(1, 3, 1, 3, dtype=torch.bool)
    adv[0, 0, 0, 0] = 0.75  # the other channels of this pixel are clean
    adv[0, :, 0, 1] = 0.5
    allowed[0, 2, 0, 0] = False
    trim = Told(adv, images, Units("pixels"), allowed=allowed, stride=0.1)
    grad = torch.tensor([[-9.0, -1, -5], [9, -1, -5], [9, -1, -5]]).view(1, 3, 1, 3)
    after = trim.tell(-100, grad, met=True)
    assert trim.removed() == [1]
    expected = torch.tensor([[0.85, 0.25, 0.25], [0.15, 0.25, 0.25], [0.25, 0.25, 0.25]])
    torch.testing.assert_close(after.view(3, 3), expected)


def test_values_that_may_not_change_take_no_steps() -> None:
    images = exact_images(1, (3, 6, 6), seed=3).float()
    allowed = exact_images(1, (3, 6, 6), seed=5) > 0.5
    adv = torch.where(allowed, 1 - images, images)
    for units in (ELEMENTS, Units("pixels")):
        trim = Told(adv, images, units, allowed=allowed, stride=0.1)
        for _ in range(30):
            after = trim.tell(-1, torch.linspace(-1, 1, 108), met=True)
            assert torch.equal(after[~allowed], images[~allowed])
        assert trim.search.found.cost.tolist() == [1]


@pytest.mark.parametrize("eight_bit", [False, True])
def test_stepped_values_keep_to_the_grid(eight_bit: bool) -> None:
    """0.1 is 25.5 levels of 255."""
    trim = stepping([127 / 255, 200 / 255], clean=51 / 255, eight_bit=eight_bit)
    adv = trim.tell(-100, torch.tensor([-9.0, -1.0]), met=True)
    level = values_of(adv * 255)
    assert level == pytest.approx([152 if eight_bit else 152.5, 51], abs=1e-3)
    assert torch.equal((adv * 255).round() / 255, adv) == eight_bit


def test_a_step_back_to_the_level_of_the_clean_value_leaves_the_unit_unchanged() -> None:
    """By 0.098 of the box, 24.99 levels of 255."""
    trim = stepping([76 / 255, 200 / 255, 240 / 255], clean=51 / 255, length=100, eight_bit=True)
    trim.search.taken, trim.search._limit[:] = torch.tensor([2]), 1
    trim.slot = trim.search.slot(trim.problem, ELEMENTS, 10, 2)
    adv = trim.tell(-100, torch.tensor([9.0, -9, 9]), met=True)
    assert torch.equal(adv[..., [0, 2]], trim.images[..., [0, 2]])
    assert differing(trim, trim.images) == 1
    trim.tell(-100, torch.tensor([9.0, -9, 9]), met=True)
    assert trim.search.found.cost.tolist() == [1]


def test_while_units_are_swapped_all_changed_ones_step() -> None:
    """What is swapped in may be at a corner that the gradient leads away from."""
    trim, seen = grey(20, stride=0.1), set[tuple[bool, float]]()
    best = trim.search.found.images
    rising = (SLOPES < 0).view_as(best)  # the first 20, which are black, too
    for _ in range(60):
        adv = trim.search.adv
        old = (best != trim.images) & (adv != trim.images)
        torch.testing.assert_close(adv[old], torch.full_like(adv[old], 0.1))
        fresh = (best == trim.images) & (adv != trim.images)
        assert (int(old.sum()), int(fresh.sum())) == (18, 1)
        seen.add((bool(rising[fresh]), round(adv[fresh].item(), 3)))
        trim.tell(math.nan, SLOPES)
    assert seen == {(True, 1.0), (True, 0.1), (False, 0.0), (False, 0.9)}


def test_a_trim_with_steps_removes_units_that_are_needed_without_them() -> None:
    """The values must sum to 2.6: all six of 0.5, or four that took two steps."""

    def model(images: Tensor) -> Tensor:
        total = images.flatten(1).sum(dim=1) - 2.6
        return torch.stack((-total, total), dim=1)

    images = torch.zeros(1, 1, 1, 6)
    problem = problem_of(Classifier(model), images, Goal(torch.tensor([0])))
    needed = []
    for stride in (0.0, 0.1):
        found = as_found(images + 0.5, images, ELEMENTS)
        search = trim_of(problem, found, 40, stride=stride)
        while search._removing.all():  # no swaps yet
            list(each_pass(problem, search, ELEMENTS, 1, int(search.taken)))
        needed.append(found.cost.item())
    assert needed == [6, 4]


# Swaps of a grey image of which some units are black, once each was told to be needed

SLOPES = torch.linspace(-1, 1, 100)


def grey(
    cost: int,
    units: Units = ELEMENTS,
    shape: tuple[int, int, int] = (1, 10, 10),
    *,
    allowed: Tensor | None = None,
    grad: Tensor = SLOPES,
    stride: float = 0.0,
) -> Told:
    """A trim that is about to swap; the margin of what was found is -1."""
    images = torch.full((1, *shape), 0.5)
    may = torch.ones_like(images, dtype=torch.bool) if allowed is None else allowed
    first = units.largest(may.float()).bool()
    first &= first.cumsum(dim=1) <= cost
    adv = torch.where(units.spread(first, images) & may, 0.0, images)
    trim = Told(adv, images, units, allowed=allowed, stride=stride)
    trim.tell(-1, grad, met=True)
    settle(trim, grad)
    return trim


def settle(trim: Told, grad: Tensor = SLOPES) -> None:
    """Say that no unit can go, without a margin that a swap could be compared with."""
    while not trim.swaps:
        assert trim.removed()
        trim.tell(math.nan, grad)


def differing(trim: Told, other: Tensor) -> int:
    return int(trim.units.count(trim.search.adv, other))


def test_a_swap_that_raises_the_margin_is_undone() -> None:
    trim = grey(20)
    assert differing(trim, trim.images) == 19
    assert differing(trim, trim.search.found.images) == 3  # two out, one in
    current = trim.search.adv
    trim.tell(5, SLOPES)
    margins = [(6.0, False), (5.0, True), (4.0, True), (4.5, False), (math.nan, False), (4.0, True)]
    for margin, kept in margins:
        candidate = trim.search.adv
        assert differing(trim, trim.images) == 19
        assert differing(trim, current) == 2  # one out, one in
        trim.tell(margin, SLOPES)
        current = candidate if kept else current
    assert differing(trim, current) == 2


def test_a_candidate_of_another_count_is_not_swapped_further() -> None:
    trim = grey(20)
    first = trim.search.adv
    trim.tell(5, SLOPES)
    trim.search.adv = trim.images
    trim.tell(-5, SLOPES)
    assert differing(trim, first) == 2


def test_what_was_removed_in_vain_may_be_swapped_further() -> None:
    """It has one unit fewer than the best, and the lowest margin of all such."""
    images = torch.full((1, 1, 10, 10), 0.5)
    adv = images.clone()
    adv[:, :, :2] = 0
    trim = Told(adv, images)
    trim.tell(-1, SLOPES, met=True)
    lowest = images
    while not trim.swaps:
        removed, candidate = trim.removed(), trim.search.adv
        lowest = candidate if removed == [7] else lowest
        trim.tell(2.0 if removed == [7] else 3.0, SLOPES)
    assert differing(trim, lowest) == 2


def test_after_a_shorter_image_any_margin_will_do() -> None:
    trim = grey(20)
    trim.tell(5, SLOPES)
    shorter = trim.search.adv
    trim.tell(-1, SLOPES, met=True)
    assert trim.search.found.cost.tolist() == [19]
    settle(trim)
    for _ in range(9):
        assert differing(trim, trim.images) == 18
        assert differing(trim, shorter) == 3
        trim.tell(math.nan, SLOPES)
    second = trim.search.adv
    trim.tell(9, SLOPES)
    assert differing(trim, second) == 2


@pytest.mark.parametrize(("taken", "out"), [(1, 4), (50, 2), (90, 1), (100, 1), (120, 1)])
def test_a_tenth_of_the_units_is_swapped_and_ever_fewer(taken: int, out: int) -> None:
    """Of 45 units; in 100 passes, and beyond them."""
    trim = grey(46)
    trim.search.taken, trim.search.length = torch.tensor([taken]), torch.tensor([100])
    trim.slot, trim.now = trim.search.slot(trim.problem, ELEMENTS, 10, taken), 0
    trim.tell(math.nan, SLOPES)
    assert len(trim.removed()) == out + 1  # one more, since there are 46
    assert differing(trim, trim.images) == 45


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_units_are_swapped_in_at_corners_that_are_allowed(
    unit: Literal["elements", "pixels"],
) -> None:
    allowed = exact_images(1, (3, 6, 6), seed=3) > 0.7
    slopes = torch.linspace(-1, 1, 108)
    trim = grey(6, Units(unit), (3, 6, 6), allowed=allowed, grad=slopes)
    best, values = trim.search.found.images, set[float]()
    for _ in range(40):
        candidate = trim.search.adv
        assert not ((candidate != trim.images) & ~allowed).any()
        assert differing(trim, trim.images) == 5
        fresh = (best == trim.images) & (candidate != trim.images)
        values |= set(candidate[fresh].tolist())
        trim.tell(1, slopes)
    assert values == {0.0, 1.0}


def test_any_unit_may_go() -> None:
    """Two of 20 do in each of 400 swaps: 40 times each, within 4 standard deviations."""
    trim, times = grey(20), torch.zeros(20)
    for _ in range(400):
        times[trim.removed()] += 1
        trim.tell(math.nan, SLOPES)
    assert times.sum() == 800
    assert times.min() >= 16
    assert times.max() <= 64


def test_half_of_the_swaps_follow_the_gradient() -> None:
    """By promise the value goes where the gradient says; else to either corner."""
    trim = grey(20)
    downhill = (SLOPES < 0).float().view_as(trim.images)
    against = 0
    for _ in range(400):
        candidate = trim.search.adv
        fresh = (trim.search.found.images == trim.images) & (candidate != trim.images)
        assert int(fresh.sum()) == 1
        against += int((candidate != downhill)[fresh].sum())
        trim.tell(math.nan, SLOPES)
    assert 70 <= against <= 130  # a quarter of 400, within 3.5 standard deviations


def test_the_other_half_takes_any_unit_to_any_corner() -> None:
    """Only one of the 80 others has a slope: half of the swaps take it, and one in 80 more."""
    slopes = torch.zeros(100)
    slopes[:20], slopes[70] = -1, 0.01
    trim, units, values = grey(20, grad=slopes), list[int](), list[float]()
    for _ in range(400):
        new = (trim.search.found.images == trim.images) & (trim.search.adv != trim.images)
        (unit,) = new.flatten().nonzero().flatten().tolist()
        units.append(unit)
        values += trim.search.adv[new].tolist() if unit != 70 else []
        trim.tell(math.nan, slopes)
    assert 167 <= units.count(70) <= 238  # 202.5, within 3.5 standard deviations
    assert min(units) >= 20
    assert len({*units}) > 60
    assert 0.37 <= sum(values) / len(values) <= 0.63  # of about 197


def test_each_channel_of_a_pixel_goes_to_a_corner_of_its_own() -> None:
    """Without a gradient, swaps that follow it take no pixel."""
    none = torch.zeros(108)
    trim, corners = grey(6, Units("pixels"), (3, 6, 6), grad=none), set[tuple[float, ...]]()
    best = trim.search.found.images
    for _ in range(150):
        new = trim.units.changed(trim.search.adv, trim.images)
        new &= ~trim.units.changed(best, trim.images)
        corners |= {tuple(values) for values in trim.search.adv.flatten(2)[0].T[new[0]].tolist()}
        trim.tell(math.nan, none)
    assert corners == {(r, g, b) for r in (0.0, 1.0) for g in (0.0, 1.0) for b in (0.0, 1.0)}


def test_a_swap_draws_one_number_per_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that says whether it follows the gradient; to remove units, nothing is drawn."""
    drawn: list[tuple[int, ...]] = []
    bits = Streams._bits

    def note(self: Streams, shape: tuple[int, ...], step: int, use: str) -> Tensor:
        drawn.append(shape)
        return bits(self, shape, step, use)

    monkeypatch.setattr(Streams, "_bits", note)
    trim = grey(6, Units("pixels"), (3, 6, 6), grad=torch.linspace(-1, 1, 108))
    assert sorted(drawn) == [(1,), (36,)]
    trim.tell(1, torch.linspace(-1, 1, 108))
    assert len(drawn) == 4


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
