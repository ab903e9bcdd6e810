"""Trim gives nothing up, and leaves nothing that could be spared."""

from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from parts.long_results import (
    SHAPE,
    as_found,
    cut_on_the_way,
    guesses,
    noisy,
    problem_of,
    shortened_with_and_without_company,
)
from pinprick import Classifier, Goal, Problem
from pinprick.attacks.pinprick.trim import Trimmer, redraw, trim
from pinprick.oracle import exact_images, exact_linear, fewest_elements, fewest_pixels, sure_images
from pinprick.parts.best import Best
from pinprick.parts.choose_units import draw_largest
from pinprick.parts.remove_units import UnitRemoval, remove_units
from pinprick.parts.units import Units


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
        trim(problem[rows], shorter, units, 40, "test")
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
    trimmer = Trimmer(problem_of(curved, images, goal), as_found(adv, images, units), units, "test")
    before = trimmer.found.cost
    for _ in range(40):
        cost = trimmer.found.cost
        trimmer.step()
        assert (trimmer.found.cost <= cost).all()
        with torch.no_grad():
            assert goal.met(curved(trimmer.found.images)).all()
        assert torch.equal(trimmer.found.cost, units.count(trimmer.found.images, images))
    assert (trimmer.found.cost < before).all()


def badly_chosen() -> tuple[Classifier, Problem, Best]:
    """At the wrong units of a linear model: each is needed, though others would do better."""
    model, units = exact_linear(2, SHAPE), Units("elements")
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
    return model, fresh, as_found(adv, images, units)[rows]


def test_choosing_anew_goes_on_where_putting_back_ends() -> None:
    _, problem, found = badly_chosen()
    everyone, units = torch.arange(len(problem)), Units("elements")
    putting = UnitRemoval(problem, found[everyone], units)
    trimmer = Trimmer(problem, found[everyone], units, "test")
    for _ in range(80):
        putting.step()
        trimmer.step()
    assert not putting.open.any()
    assert (trimmer.found.cost < putting.found.cost).all()


def test_gates_are_redrawn_with_the_passes_of_each_image() -> None:
    model, problem, found = badly_chosen()
    assert not remove_units(problem, found, Units("elements"), None).any()
    before, spent = found.cost.clone(), problem.forwards
    passes = torch.zeros_like(spent)
    passes[:3] = torch.tensor([40, 1, 7])
    redraw(problem, found, Units("elements"), passes, "test")
    assert torch.equal(problem.forwards - spent, passes.masked_fill(passes == 1, 0))
    assert found.cost[0] < before[0]
    assert torch.equal(found.cost[passes <= 1], before[passes <= 1])
    assert (found.cost <= before).all()
    assert (guesses(model, found.images) != problem.goal.labels).all()


def test_a_single_unit_is_left_as_it_is() -> None:
    def is_dark(images: Tensor) -> Tensor:
        first = images.flatten(1)[:, :1]
        return torch.cat((first - 0.5, 0.5 - first), dim=1)

    images = torch.full((2, 1, 2, 2), 0.75)
    problem = problem_of(Classifier(is_dark), images, Goal(torch.tensor([0, 0])))
    adv = images.clone()
    adv[:, 0, 0, 0] = 0.125
    found = as_found(adv, images, Units("elements"))
    trim(problem, found, Units("elements"), 5, "test")
    assert torch.equal(found.images, adv)
    assert found.cost.tolist() == [1, 1]


def test_each_pass_is_one_forward_and_one_backward(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    fooled, adv = noisy(curved, images, curved_labels)
    problem = problem_of(curved, images, Goal(curved_labels))
    trim(problem[fooled], as_found(adv, images, Units("pixels"))[fooled], Units("pixels"), 9, "")
    assert torch.equal(problem.tally.forwards, 9 * fooled)
    assert torch.equal(problem.tally.backwards, 9 * fooled)


def test_a_cut_goes_on_as_if_the_others_were_there() -> None:
    model, units = exact_linear(4, SHAPE), Units("elements")
    images = exact_images(6, SHAPE)
    labels = guesses(model, images)
    fooled, adv = noisy(model, images, labels)
    assert fooled.all()
    problem = problem_of(model, images, Goal(labels))
    whole, cut = (Trimmer(problem, as_found(adv, images, units), units, "test") for _ in range(2))
    rows = torch.tensor([4, 1])
    cut = cut_on_the_way(whole, cut, rows)
    assert torch.equal(cut.settled, whole.settled[rows])


def test_where_units_are_worth_the_same_company_makes_no_difference() -> None:
    before, beside, alone = shortened_with_and_without_company(
        lambda part, found, units: trim(part, found, units, 60, "test")
    )
    assert torch.equal(beside, alone)
    assert (beside != before).any()


def test_each_step_draws_gates_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    _, problem, found = badly_chosen()
    steps = []

    def note(problem: Problem, *rest: Any, step: int, **others: Any) -> Tensor:
        steps.append(step)
        return draw_largest(problem, *rest, step=step, **others)

    monkeypatch.setattr("pinprick.attacks.pinprick.trim.draw_largest", note)
    trim(problem, found, Units("elements"), 4, "test")
    assert steps == [0, 1, 2, 3]
