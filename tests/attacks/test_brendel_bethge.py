"""Brendel & Bethge: the step against brute force, the walk on linear models, and the start."""

import itertools
import math
from typing import Literal

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, run_attack
from pinprick.attacks import BrendelBethge
from pinprick.attacks.brendel_bethge import boundary_step
from pinprick.oracle import (
    exact_images,
    exact_linear,
    fewest_elements,
    fewest_pixels,
    sure_images,
)
from pinprick.parts.units import Units

SHAPE = (2, 1, 3)  # two channels, three pixels


def shortest(slope: Tensor, low: Tensor, high: Tensor, rise: float) -> Tensor | None:
    """The shortest step in the box by which the linear margin rises by ``rise`` at most."""
    pulls = torch.logspace(-4, 8, 4000, dtype=torch.double).view(-1, 1)
    steps = torch.cat([torch.zeros_like(slope)[None], (-pulls * slope).clamp(low, high)])
    enough = ((steps * slope).sum(dim=1) <= rise + 1e-9).nonzero()
    return steps[enough[0, 0]] if len(enough) else None


def fewest(
    slope: Tensor, point: Tensor, clean: Tensor, room: float, radius: float, unit: str
) -> float:
    """The fewest units that can stay changed, by trying all sets of them; infinity if none can."""
    slope, point, clean = (value.flatten() for value in (slope, point, clean))
    number = SHAPE[2] if unit == "pixels" else slope.numel()
    counts = []
    for kept in itertools.product((False, True), repeat=number):
        stay = torch.tensor(kept).repeat(slope.numel() // number)
        back = torch.where(stay, 0, clean - point)
        low, high = torch.where(stay, -point, 0), torch.where(stay, 1 - point, 0)
        step = shortest(slope * stay, low, high, room - float((slope * back).sum()))
        if step is not None and (back + step).norm() <= radius:
            counts.append(sum(kept))
    return min(counts, default=math.inf)


@pytest.mark.parametrize("unit", ["elements", "pixels"])
@pytest.mark.parametrize("radius", [0.5, 0.8, 5.0])
@pytest.mark.parametrize("room", [-0.3, 0.2])
def test_a_step_leaves_about_as_few_changes_as_the_best_of_all_sets(
    unit: Literal["elements", "pixels"], radius: float, room: float
) -> None:
    drawn = torch.Generator().manual_seed(0)
    clean, point = torch.rand(2, 8, *SHAPE, generator=drawn, dtype=torch.double)
    slope = torch.randn(8, *SHAPE, generator=drawn, dtype=torch.double)
    rooms, radii = torch.full((8,), room).double(), torch.full((8,), radius).double()
    stay, move = boundary_step(slope, point, clean, rooms, radii, Units(unit))
    step = torch.where(stay, move, clean - point)
    wanted = [fewest(slope[row], point[row], clean[row], room, radius, unit) for row in range(8)]
    counted = Units(unit).total(stay.double()).clamp_max(1).sum(dim=1).tolist()
    tried = [row for row in range(8) if wanted[row] < math.inf]
    more = [counted[row] - wanted[row] for row in tried]
    assert len(tried) > 4
    assert min(more) == 0  # brute force is the best
    assert max(more) <= 1  # the gap of the Lagrangian
    assert sum(more) <= len(more) / 3
    assert ((step * slope).flatten(1).sum(dim=1)[tried] <= room + 1e-6).all()
    assert (step.flatten(1).norm(dim=1)[tried] <= 1.01 * radius).all()
    assert (((point + step) >= -1e-9) & ((point + step) <= 1 + 1e-9)).all()


def test_where_the_boundary_is_out_of_reach_the_step_leads_towards_it() -> None:
    slope = torch.tensor([0.6, 0.8, 0.0]).view(1, 1, 1, 3)
    point = torch.full_like(slope, 0.5)
    stay, move = boundary_step(
        slope, point, point, torch.tensor([-9.0]), torch.tensor([0.1]), Units("elements")
    )
    step = torch.where(stay, move, 0).flatten()
    torch.testing.assert_close(step, -0.1 * slope.flatten(), atol=2e-3, rtol=0)


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_comes_near_the_fewest_of_a_linear_model(unit: Literal["elements", "pixels"]) -> None:
    model = exact_linear(10, (3, 8, 8), seed=1)
    images = sure_images(model, exact_images(8, (3, 8, 8)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = BrendelBethge(steps=40, unit=unit)
    assert attack.facts().unit == unit
    result = run_attack(attack, model, images, labels)
    needed, least = (
        (result.needed_elements, fewest_elements)
        if unit == "elements"
        else (result.needed_pixels, fewest_pixels)
    )
    ratio = needed / least(model, images, Goal(labels))
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.1


def test_one_step_from_a_start_is_about_the_fewest_of_two_classes() -> None:
    """The margin of two classes is linear, and the whole box is within the first radius."""
    model = exact_linear(2, (3, 6, 5), seed=1)
    images = sure_images(model, exact_images(8, (3, 6, 5)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
        weight = model.net[1].weight  # type: ignore[index]
    uphill = (weight[1 - labels] - weight[labels]).view_as(images) > 0
    attack = BrendelBethge(steps=2, overshoot=1.001)
    result = run_attack(attack, model, images, labels, start=uphill.to(images))
    more = result.needed_elements - fewest_elements(model, images, Goal(labels))
    assert more.min() == 0
    assert more.max() <= 1


@pytest.mark.parametrize("targeted", [False, True])
def test_signed_steps_find_a_start(
    curved: Classifier, images: Tensor, curved_labels: Tensor, targeted: bool
) -> None:
    targets = (curved_labels + 1) % 4 if targeted else None
    result = run_attack(BrendelBethge(steps=20), curved, images, curved_labels, targets=targets)
    assert result.success.all()
    assert (result.forwards == 20).all()
    assert torch.equal(result.forwards, result.backwards)


def test_fewer_elements_change_than_at_the_start(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    short = run_attack(BrendelBethge(steps=3), curved, images, curved_labels)
    long = run_attack(BrendelBethge(steps=30), curved, images, curved_labels)
    assert long.success.all()
    assert (long.needed_elements <= short.needed_elements).all()
    assert long.needed_elements.mean() < images[0].numel() / 4
