"""Putting back leaves no single unit that could be spared, and counts what it asks."""

from typing import Literal

import pytest
import torch
from torch import Tensor

from parts.long_results import (
    SHAPE,
    as_found,
    cut_on_the_way,
    guesses,
    long_case,
    problem_of,
    shortened_with_and_without_company,
    tied_case,
)
from pinprick import Classifier, Goal
from pinprick.parts.remove_units import UnitRemoval, remove_units
from pinprick.parts.units import Units

Unit = Literal["elements", "pixels"]


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_once_settled_no_single_unit_can_be_spared(
    curved: Classifier, images: Tensor, curved_labels: Tensor, unit: Unit, gradients: bool
) -> None:
    units = Units(unit)
    images, adv, labels = long_case(curved, images, curved_labels)
    problem = problem_of(curved, images, Goal(labels), gradients=gradients)
    work = UnitRemoval(problem, as_found(adv, images, units), units)
    for _ in range(150):
        before = work.found.cost
        work.step()
        assert (work.found.cost <= before).all()
        assert torch.equal(work.found.cost, units.count(work.found.images, images))
        assert (guesses(curved, work.found.images) != labels).all()
    assert not work.open.any()
    assert bool(problem.tally.backwards.any()) == gradients
    for image, shorter, label in zip(images, work.found.images, labels, strict=True):
        changed = units.changed(shorter[None], image[None])
        places = changed[0].nonzero()
        one = torch.zeros(len(places), changed.shape[1], dtype=torch.bool).scatter(1, places, True)
        spared = torch.where(units.spread(one, shorter.expand(len(places), *SHAPE)), image, shorter)
        assert (guesses(curved, spared) == label).all()


@pytest.mark.parametrize("passes", [1, 5, 17, None])
def test_passes_are_kept_and_what_is_left_is_told(
    curved: Classifier, images: Tensor, curved_labels: Tensor, passes: int | None
) -> None:
    units = Units("elements")
    images, adv, labels = long_case(curved, images, curved_labels)
    problem, found = problem_of(curved, images, Goal(labels)), as_found(adv, images, units)
    before = found.cost.clone()
    left = remove_units(problem, found, units, passes)
    assert torch.equal(found.cost, units.count(found.images, images))
    assert (guesses(curved, found.images) != labels).all()
    assert (found.cost <= before).all()
    if passes is None:
        assert not left.any()
        assert (found.cost < before).all()
    else:
        assert (problem.tally.forwards <= passes).all()
        assert (left > 0).any()


def test_a_single_unit_costs_nothing_and_no_images_do_no_harm(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    units, adv = Units("elements"), images.clone()
    adv[:, 0, 0, 0] = 1 - adv[:, 0, 0, 0].round()
    found, problem = as_found(adv, images, units), problem_of(curved, images, Goal(curved_labels))
    assert remove_units(problem, found, units, 9).tolist() == [0] * len(images)
    assert not problem.tally.forwards.any()
    nobody = torch.arange(0)
    assert len(remove_units(problem[nobody], found[nobody], units, 9)) == 0


def test_a_unit_tried_in_vain_is_tried_again_once_another_is_gone() -> None:
    """The first of three can be spared only without the second, and is tried before it."""

    def answer(x: Tensor) -> Tensor:
        first, second, third = x.flatten(1)[:, :3].unbind(dim=1)
        score = third + 0.2 * second - 10 * second * (1 - first).square()
        return torch.stack([torch.full_like(score, 0.5), score], dim=1)

    images = torch.zeros(1, *SHAPE, dtype=torch.double)
    adv = images.flatten(1).index_fill(1, torch.arange(3), 1.0).view_as(images)
    units = Units("elements")
    problem = problem_of(Classifier(answer), images, Goal(torch.tensor([0])))
    work = UnitRemoval(problem, as_found(adv, images, units), units)
    for _ in range(8):
        work.step()
    assert not work.open.any()
    assert work.found.images.flatten(1).nonzero().tolist() == [[0, 2]]


def test_what_is_open_is_never_less_than_what_can_be_spared(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    units = Units("elements")
    images, adv, labels = long_case(curved, images, curved_labels)
    work = UnitRemoval(
        problem_of(curved, images, Goal(labels)), as_found(adv, images, units), units
    )
    seen = set()
    for _ in range(40):
        work.step()
        for i, most in enumerate(work.open.tolist()):
            shorter = work.found.images[i]
            places = units.changed(shorter[None], images[i : i + 1])[0].nonzero()
            one = torch.zeros(len(places), shorter.numel(), dtype=torch.bool).scatter(1, places, 1)
            spared = torch.where(one.view(-1, *SHAPE), images[i], shorter)
            assert int((guesses(curved, spared) != labels[i]).sum()) <= most
            seen.add(most)
    assert 0 in seen
    assert len(seen) > 4


def test_no_more_are_asked_about_than_allowed(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    units = Units("elements")
    images, adv, labels = long_case(curved, images, curved_labels)
    problem = problem_of(curved, images, Goal(labels))
    work = UnitRemoval(problem, as_found(adv, images, units), units)
    most = torch.arange(1, len(problem) + 1)
    for _ in range(30):
        before = problem.forwards
        work.step(most)
        assert (problem.forwards - before <= most).all()


def test_a_cut_goes_on_as_if_the_others_were_there(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    units = Units("elements")
    images, adv, labels = long_case(curved, images, curved_labels)
    problem = problem_of(curved, images, Goal(labels))
    whole, cut = (UnitRemoval(problem, as_found(adv, images, units), units) for _ in range(2))
    rows = torch.tensor([2, 0])
    cut = cut_on_the_way(whole, cut, rows)
    assert torch.equal(cut.open, whole.open[rows])


def test_where_units_are_worth_the_same_company_makes_no_difference() -> None:
    before, beside, alone = shortened_with_and_without_company(
        lambda part, found, units: remove_units(part, found, units, 200)
    )
    assert torch.equal(beside, alone)
    assert (beside != before).any()


def test_of_units_that_came_as_near_the_first_are_tried_again() -> None:
    problem, adv = tied_case()
    units = Units("elements")
    work = UnitRemoval(problem, as_found(adv, problem.images, units), units)
    work._tried |= True
    work._went |= True
    again = work._todo().nonzero().tolist()
    assert again == [[row, place] for row in (0, 1) for place in range(32)]


@pytest.mark.parametrize("gradients", [True, False])
def test_a_group_costs_one_forward_pass_and_with_gradients_one_backward_pass(
    curved: Classifier, images: Tensor, curved_labels: Tensor, gradients: bool
) -> None:
    units = Units("elements")
    images, adv, labels = long_case(curved, images, curved_labels)
    problem = problem_of(curved, images, Goal(labels), gradients=gradients)
    work = UnitRemoval(problem, as_found(adv, images, units), units)
    for step in (1, 2):  # with gradients the whole image first, then half of its units
        work.step()
        assert (problem.tally.forwards == step).all()
        assert (problem.tally.backwards == (step if gradients else 0)).all()
