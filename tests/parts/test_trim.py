"""Trim gives nothing up, leaves no unit that is not needed, and swaps the others."""

import math
from collections.abc import Callable
from typing import Literal

import pytest
import torch
from drive_search import answer, drive
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
from pinprick.attacks.pinprick.trim import Removal, Swaps, trim
from pinprick.oracle import exact_images, exact_linear, fewest_elements, fewest_pixels, sure_images
from pinprick.parts.best import Best
from pinprick.parts.remove_units import UnitRemoval
from pinprick.parts.units import Units

ELEMENTS = Units("elements")


def run(problem: Problem, found: Best, units: Units, steps: int) -> list[Tensor]:
    """Trim what was found, in place; returns the candidates."""
    search = trim(problem, units, steps, found=found, use="test")
    return drive(problem, search).candidates


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_reaches_the_optimum_from_any_superset_of_it(unit: Literal["elements", "pixels"]) -> None:
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
        run(problem[rows], shorter, units, 40)
        assert torch.equal(shorter.cost.double(), fewest[rows])


@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_what_is_kept_meets_the_goal_and_never_grows(
    curved: Classifier,
    images: Tensor,
    curved_labels: Tensor,
    unit: Literal["elements", "pixels"],
    targeted: bool,
) -> None:
    units = Units(unit)
    fooled, adv = noisy(curved, images, curved_labels)
    assert fooled.sum() >= 4
    images, adv, labels = images[fooled], adv[fooled], curved_labels[fooled]
    goal = Goal(labels, guesses(curved, adv) if targeted else None)
    problem, found = problem_of(curved, images, goal), as_found(adv, images, units)
    search, before = trim(problem, units, 41, found=found, use="test"), found.cost
    candidate = next(search)
    for _ in range(40):
        cost = found.cost
        candidate = search.send(answer(problem, candidate))
        assert (found.cost <= cost).all()
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


def test_swapping_goes_on_where_removing_ends() -> None:
    problem, found = badly_chosen()
    removal = UnitRemoval(problem, found[torch.arange(len(problem))], ELEMENTS)
    for _ in range(80):
        removal.step()
    assert not removal.open.any()
    run(problem, found, ELEMENTS, 80)
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


def test_where_units_are_worth_the_same_company_makes_no_difference() -> None:
    before, beside, alone = shortened_with_and_without_company(
        lambda part, found, units: run(part, found, units, 60)
    )
    assert torch.equal(beside, alone)
    assert (beside != before).any()


# By hand: images of eight values, all of them changed


def judge(fools: Callable[[Tensor], Tensor], slopes: list[float]) -> Classifier:
    """The margin is -100 where the values fool and 100 elsewhere, with these slopes."""

    def model(images: Tensor) -> Tensor:
        flat = images.flatten(1)
        lead = torch.where(fools(flat.detach() > 0), -100.0, 100.0)
        small = (flat - flat.detach()) @ torch.tensor(slopes)
        return torch.stack((lead - small, torch.zeros_like(lead)), dim=1)

    return Classifier(model)


def changed_units(model: Classifier, number: int, steps: int) -> list[list[int]]:
    """The units that are changed in each candidate, from all of them on."""
    images = torch.zeros(1, 1, 1, number)
    problem = problem_of(model, images, Goal(torch.tensor([0])))
    candidates = run(problem, as_found(images + 1, images, ELEMENTS), ELEMENTS, steps)
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


def test_after_a_swap_that_fools_all_units_are_tried_again() -> None:
    images = torch.zeros(1, 1, 1, 4)
    problem = problem_of(
        judge(lambda on: on.any(dim=1), [1.0] * 4), images, Goal(torch.tensor([0]))
    )
    adv = torch.tensor([1.0, 1.0, 1.0, 0.0]).view_as(images)
    other = torch.tensor([1.0, 0.0, 0.0, 1.0]).view_as(images)
    found = as_found(adv, images, ELEMENTS)
    removal, yes, no = (
        Removal(problem, ELEMENTS, found, 3),
        torch.tensor([True]),
        torch.tensor([False]),
    )
    told = torch.tensor([-100.0]), -torch.ones_like(images)
    removal.learn(adv, yes, *told)
    for unit in range(3):
        candidate, settled = removal.propose()
        assert (adv - candidate).flatten().nonzero().tolist() == [[unit]]
        assert not settled
        removal.learn(candidate, no, *told)
    assert removal.propose()[1]
    removal.learn(other, no, *told)  # a swap in vain
    assert removal.propose()[1]
    found.offer(other, ELEMENTS.count(other, images), yes)
    removal.learn(other, yes, *told)
    candidate, settled = removal.propose()
    assert (other - candidate).flatten().nonzero().tolist() == [[0]]
    assert not settled


def test_what_does_not_fool_yet_takes_shorter_and_shorter_signed_steps() -> None:
    model = judge(lambda on: ~on.any(dim=1), [-1.0] * 4)  # all values must be zero
    images = torch.full((1, 1, 1, 4), 0.5)
    problem = problem_of(model, images, Goal(torch.tensor([0])))
    found = Best(images)
    candidates = run(problem, found, ELEMENTS, 4)
    values = [adv.unique().tolist() for adv in candidates]
    assert values == [pytest.approx([value]) for value in (0.5, 0.3, 0.15, 0.05)]
    assert found.cost.isinf().all()
    run(problem, found, ELEMENTS, 8)  # by 0.2, 0.175, 0.15: there
    assert found.cost.tolist() == [4]


def test_signed_steps_keep_to_the_grid() -> None:
    model = judge(lambda on: ~on.any(dim=1), [-1.0] * 4)
    images = torch.full((1, 1, 1, 4), 102 / 255)
    problem = problem_of(model, images, Goal(torch.tensor([0])))
    search = trim(problem, ELEMENTS, 7, found=Best(images), use="test", eight_bit=True)
    for adv in drive(problem, search).candidates:
        assert torch.equal((adv * 255).round() / 255, adv)


# Swaps alone, of a grey image of which some units are black


class GreySwaps:
    """Swaps that were told of the black image, whose margin is -1."""

    def __init__(
        self,
        cost: int,
        units: Units = ELEMENTS,
        shape: tuple[int, int, int] = (1, 10, 10),
        allowed: Tensor | None = None,
    ) -> None:
        self.images, self.units = torch.full((1, *shape), 0.5), units
        may = torch.ones_like(self.images, dtype=torch.bool) if allowed is None else allowed
        first = units.largest(may.float()).bool()
        first &= first.cumsum(dim=1) <= cost
        black = units.spread(first, self.images) & may
        self.adv = torch.where(black, torch.zeros_like(self.images), self.images)
        problem = Problem(
            Classifier(lambda batch: batch.flatten(1)[:, :2]),
            self.images,
            Goal(torch.tensor([0])),
            Streams(0, torch.arange(1)),
            allowed=allowed,
        )
        found = as_found(self.adv, self.images, units)
        self.swaps = Swaps(problem, units, found, cost, "test")
        self.tell(self.adv, -1.0, shorter=True)

    def tell(self, candidate: Tensor, margin: float, *, shorter: bool = False) -> None:
        count = self.units.count(candidate, self.images)
        grad = torch.linspace(-1, 1, self.images.numel()).view_as(self.images)
        told = torch.tensor([shorter]), torch.tensor([margin]), grad
        self.swaps.learn(candidate, count, *told)

    def differing(self, one: Tensor, other: Tensor) -> int:
        return int(self.units.count(one, other))


def test_a_swap_that_raises_the_margin_is_undone() -> None:
    grey = GreySwaps(20)
    first = grey.swaps.propose(1, 1.0)
    assert grey.differing(first, grey.images) == 19
    assert grey.differing(first, grey.adv) == 3  # two out, one in
    grey.tell(first, 5.0)
    current = first
    margins = [(6.0, False), (5.0, True), (4.0, True), (4.5, False), (math.nan, False), (4.0, True)]
    for step, (margin, kept) in enumerate(margins, start=2):
        candidate = grey.swaps.propose(step, 1.0)
        assert grey.differing(candidate, grey.images) == 19
        assert grey.differing(candidate, current) == 2  # one out, one in
        grey.tell(candidate, margin)
        current = candidate if kept else current


def test_a_candidate_of_another_count_is_not_swapped_further() -> None:
    grey = GreySwaps(20)
    first = grey.swaps.propose(1, 1.0)
    grey.tell(first, 5.0)
    grey.tell(grey.images, -5.0)
    assert grey.differing(grey.swaps.propose(2, 1.0), first) == 2


def test_after_a_shorter_image_any_margin_will_do() -> None:
    grey = GreySwaps(20)
    first = grey.swaps.propose(1, 1.0)
    grey.tell(first, 5.0)
    shorter = grey.swaps.propose(2, 1.0)
    grey.tell(shorter, -1.0, shorter=True)
    grey.swaps._found.cost = torch.tensor([19.0])  # as the search does
    second = grey.swaps.propose(3, 1.0)
    assert grey.differing(second, grey.images) == 18
    assert grey.differing(second, shorter) == 3
    grey.tell(second, 9.0)
    assert grey.differing(grey.swaps.propose(4, 1.0), second) == 2


@pytest.mark.parametrize(("left", "out"), [(1.0, 4), (0.5, 2), (0.1, 1)])
def test_a_tenth_of_the_units_is_swapped_and_ever_fewer(left: float, out: int) -> None:
    grey = GreySwaps(41)
    candidate = grey.swaps.propose(1, left)
    removed = (grey.adv == 0) & (candidate != 0)
    assert int(removed.sum()) == out + 1  # one more, since there are 41
    assert grey.differing(candidate, grey.images) == 40


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_units_are_swapped_in_at_corners_that_are_allowed(
    unit: Literal["elements", "pixels"],
) -> None:
    allowed = exact_images(1, (3, 6, 6), seed=3) > 0.7
    grey = GreySwaps(6, Units(unit), (3, 6, 6), allowed)
    values: set[float] = set()
    for step in range(1, 40):
        candidate = grey.swaps.propose(step, 1.0)
        assert not ((candidate != grey.images) & ~allowed).any()
        assert grey.differing(candidate, grey.images) == 5
        fresh = (grey.adv == grey.images) & (candidate != grey.images)
        values |= set(candidate[fresh].tolist())
        grey.tell(candidate, 1.0)
    assert values == {0.0, 1.0}


def test_half_of_the_swaps_follow_the_gradient() -> None:
    """By promise the value goes where the gradient says; else to either corner."""
    grey = GreySwaps(20)
    downhill = (torch.linspace(-1, 1, 100) < 0).float().view_as(grey.images)
    against = 0
    for step in range(1, 401):
        candidate = grey.swaps.propose(step, 1.0)
        fresh = (grey.adv == grey.images) & (candidate != grey.images)
        against += int((candidate != downhill)[fresh].sum())
    assert 70 <= against <= 130  # a quarter of 400, within 3.5 standard deviations
