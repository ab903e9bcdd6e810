"""Anneal may find better and never makes worse, inside the mask and on the grid."""

from typing import Literal

import pytest
import torch
from drive_search import answer, drive
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams
from pinprick.attacks.pinprick.anneal import anneal
from pinprick.attacks.pinprick.lockstep import Answer
from pinprick.oracle import exact_images
from pinprick.parts.best import Best
from pinprick.parts.units import Units


def problem_of(
    model: Classifier, images: Tensor, labels: Tensor, allowed: Tensor | None = None
) -> Problem:
    rng = Streams(0, torch.arange(len(images)))
    with model.frozen():
        return Problem(model, images, Goal(labels), rng, allowed=allowed)


def run(
    problem: Problem, found: Best, units: Units, steps: int, *, eight_bit: bool = False
) -> None:
    drive(problem, anneal(problem, units, steps, found=found, eight_bit=eight_bit))


def guesses(model: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images).argmax(dim=1)


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_never_makes_worse_what_it_was_given(
    curved: Classifier, images: Tensor, curved_labels: Tensor, unit: Literal["elements", "pixels"]
) -> None:
    units = Units(unit)
    problem = problem_of(curved, images, curved_labels)
    found = Best(images)
    run(problem, found, units, 40)  # from the clean image
    assert found.cost.isfinite().all()
    for _ in range(3):
        before, cost = found.images, found.cost
        run(problem, found, units, 15)
        assert (found.cost <= cost).all()
        kept = found.cost == cost
        assert torch.equal(found.images[kept], before[kept])
        assert torch.equal(units.count(found.images, images), found.cost.float())
        assert (guesses(curved, found.images) != curved_labels).all()
    assert problem.tally.forwards.tolist() == [85] * 6
    assert problem.tally.backwards.tolist() == [85] * 6


def test_each_pass_may_only_save_units(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    problem, found = problem_of(curved, images, curved_labels), Best(images)
    search = anneal(problem, Units("elements"), 40, found=found)
    adv, counts = next(search), []
    for _ in range(39):
        adv = search.send(answer(problem, adv))
        counts.append(found.cost)
    needed = torch.stack(counts)
    assert (needed[1:] <= needed[:-1]).all()
    assert (needed[-1] < needed[4]).any()


def test_it_goes_on_from_what_was_found(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    problem, found = problem_of(curved, images, curved_labels), Best(images)
    run(problem, found, Units("elements"), 40)
    before = found.images
    _, candidates = drive(problem, anneal(problem, Units("elements"), 3, found=found))
    assert torch.equal(candidates[0], before)
    assert len(candidates) == 3


def test_changes_only_what_it_may(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    allowed = exact_images(6, (3, 6, 5), seed=3) > 0.4
    for unit in (Units("elements"), Units("pixels")):
        found = Best(images)
        run(problem_of(curved, images, curved_labels, allowed), found, unit, 40)
        assert found.cost.isfinite().any()
        assert not ((found.images != images) & ~allowed).any()


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_values_keep_to_the_grid(
    curved: Classifier, images: Tensor, unit: Literal["elements", "pixels"]
) -> None:
    images = (images * 255).round() / 255
    labels = guesses(curved, images)
    found = Best(images)
    run(problem_of(curved, images, labels), found, Units(unit), 40, eight_bit=True)
    assert found.cost.isfinite().any()
    assert torch.equal((found.images * 255).round() / 255, found.images)
    free = Best(images)
    run(problem_of(curved, images, labels), free, Units(unit), 40)
    assert not torch.equal((free.images * 255).round() / 255, free.images)


def test_a_value_off_the_grid_by_rounding_alone_counts_as_unchanged(curved: Classifier) -> None:
    """As on a GPU, which divides by 255 in another way: places the mask shuts must stay too."""
    single = Classifier(lambda images: curved(images.double()).float())
    levels = (exact_images(6, (3, 6, 5)).float() * 255).round()
    images = levels * torch.tensor(1 / 255)
    assert not torch.equal(images, levels / 255)
    allowed = torch.ones_like(images, dtype=torch.bool)
    allowed[:, 1] = False
    labels = guesses(single, images)
    problem = problem_of(single, images, labels, allowed)
    found = Best(images)
    run(problem, found, Units("pixels"), 40, eight_bit=True)
    assert found.cost.isfinite().any()
    assert torch.equal(found.images[:, 1], images[:, 1])
    moved = (found.images - images).abs()
    assert (moved[moved > 0] > 1 / 256).all()


# One step by hand: Adam's first one is 0.5 per value, whatever the size of the gradient


def after_one_step(clean: list[float], found: list[float], *, met: bool) -> list[float]:
    """The values of the second candidate; the margin falls as values do."""
    images, adv = (torch.tensor(values).view(1, 1, 1, -1) for values in (clean, found))
    model = Classifier(lambda batch: batch.flatten(1)[:, :2])
    problem = problem_of(model, images, torch.tensor([0]))
    best = Best(adv)
    best.cost = (adv != images).flatten(1).sum(dim=1).float()
    search = anneal(problem, Units("elements"), 100, found=best)
    assert torch.equal(next(search), adv)
    told = Answer(torch.ones(1), torch.tensor([met]), torch.full_like(images, 7.0))
    values: list[float] = search.send(told).flatten().tolist()
    return values


def test_while_the_goal_is_not_met_values_go_downhill_and_the_threshold_falls() -> None:
    """Changes below 0.295 are undone: 0.3, less 0.01 of the rate."""
    clean = [0.9, 0.5, 0.297, 0.293, 0.0]
    assert after_one_step(clean, clean, met=False) == pytest.approx([0.4, 0, 0, 0.293, 0], abs=1e-5)


def test_while_the_goal_is_met_changes_alone_are_weakened_and_the_threshold_rises() -> None:
    """Changes of 0.81 and 0.802 become 0.31 and 0.302; those below 0.305 are undone."""
    kept = after_one_step([0.5, 0.1], [0.5, 0.91], met=True)
    assert kept == pytest.approx([0.5, 0.41], abs=1e-5)
    undone = after_one_step([0.5, 0.1], [0.5, 0.902], met=True)
    assert undone == pytest.approx([0.5, 0.1])
