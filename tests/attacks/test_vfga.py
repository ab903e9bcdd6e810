"""VFGA against its step written out image by image, and where it stops."""

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams, run_attack
from pinprick.attacks import VFGA
from pinprick.attacks.vfga import moved, two_units
from pinprick.oracle import (
    exact_images,
    exact_linear,
    fewest_elements,
    fewest_pixels,
    sure_images,
)
from pinprick.parts.units import Units


def as_published(
    model: Classifier, problem: Problem, samples: int, most: int
) -> tuple[Tensor, list[int]]:
    """The published loop with probabilities, one image at a time, and the steps of each."""
    found, steps = problem.images.clone(), []
    for row, clean in enumerate(problem.images):
        part = problem[torch.tensor([row])]
        goal, x = part.goal, clean.clone().flatten()
        wanted = goal.labels if goal.targets is None else goal.targets
        sign = -1 if goal.targets is None else 1

        for step in range(most):
            x.requires_grad_()
            score = sign * model(x.view_as(clean).unsqueeze(0)).softmax(dim=1)[0, wanted]
            (slope,) = torch.autograd.grad(score.sum(), x)
            x = x.detach()
            barred = x != clean.flatten()
            up = ((1 - x) * slope).masked_fill(barred, -torch.inf).argmax()
            down = (x * slope).masked_fill(barred, torch.inf).argmin()
            normal = part.rng.normal(2 * samples, step=step, use="vfga, share")[0].abs()
            tries = x.repeat(2 * samples, 1)
            tries[:samples, up] += normal[:samples] * (1 - x[up])
            tries[samples:, down] -= normal[samples:] * x[down]
            tries.clamp_(0, 1)
            with torch.no_grad():
                logits = model(tries.view(-1, *clean.shape))
            score = sign * logits.softmax(dim=1)[:, wanted].squeeze(1)
            many = Goal(
                goal.labels.expand(len(tries)),
                None if goal.targets is None else goal.targets.expand(len(tries)),
            )
            met = many.met(logits)
            best = (score + met.double()).argmax()
            x = tries[best]
            if met[best]:
                found[row] = x.view_as(clean)
                break
        steps.append(step + 1)
    return found, steps


@pytest.mark.parametrize("targeted", [False, True])
def test_follows_the_published_step(
    curved: Classifier, images: Tensor, curved_labels: Tensor, targeted: bool
) -> None:
    targets = (curved_labels + 1) % 4 if targeted else None
    problem = Problem(
        curved, images, Goal(curved_labels, targets), Streams(0, torch.arange(len(images)))
    )
    with curved.frozen():
        adv, steps = as_published(curved, problem, samples=2, most=25)
    result = run_attack(VFGA(samples=2, steps=25), curved, images, curved_labels, targets=targets)
    assert result.success.any()
    torch.testing.assert_close(result.adversarial, adv)
    assert result.backwards.tolist() == steps
    assert result.forwards.tolist() == [5 * step for step in steps]


@pytest.mark.parametrize("unit", ["elements", "pixels"])
@pytest.mark.parametrize("classes", [2, 10])
def test_comes_near_the_optimum_of_a_linear_model(classes: int, unit: str) -> None:
    model = exact_linear(classes, (3, 8, 8), seed=1)
    images = sure_images(model, exact_images(8, (3, 8, 8)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = VFGA(unit="pixels" if unit == "pixels" else "elements")
    assert attack.facts().unit == unit
    result = run_attack(attack, model, images, labels)
    if unit == "pixels":
        ratio = result.needed_pixels / fewest_pixels(model, images, Goal(labels))
    else:
        ratio = result.needed_elements / fewest_elements(model, images, Goal(labels))
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.1


def test_grey_images_have_one_answer_in_both_units(images: Tensor) -> None:
    model, grey = exact_linear(4, (1, 6, 5)), images[:, :1]
    with torch.no_grad():
        labels = model(grey).argmax(dim=1)
    elements = run_attack(VFGA(unit="elements"), model, grey, labels)
    pixels = run_attack(VFGA(unit="pixels"), model, grey, labels)
    assert torch.equal(elements.adversarial, pixels.adversarial)


def test_a_step_changes_one_unit_and_an_image_leaves_once_it_fools(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(VFGA(samples=2), linear, images, labels)
    assert result.success.all()
    assert torch.equal(result.backwards, result.l0_elements)
    assert torch.equal(result.forwards, 5 * result.l0_elements)
    pixels = run_attack(VFGA(samples=2, unit="pixels"), linear, images, labels)
    assert torch.equal(pixels.backwards, pixels.l0_pixels)


def test_a_certain_network_has_a_slope(images: Tensor) -> None:
    """The probability of the label is 1 to the last digit, and its slope zero."""
    sure = exact_linear(4, (3, 6, 5), dtype=torch.float32)

    def net(images: Tensor) -> Tensor:
        return 100 * sure(images)

    few = sure_images(sure, images.float())
    with torch.no_grad():
        labels = net(few).argmax(dim=1)
        assert (net(few).softmax(dim=1).amax(dim=1) == 1).all()
    assert run_attack(VFGA(), Classifier(net), few, labels).success.all()


def test_gives_up_where_nothing_promises_a_gain(images: Tensor) -> None:
    def flat(images: Tensor) -> Tensor:
        return 0 * images.flatten(1)[:, :2] + torch.tensor([1.0, 0.0]).to(images)

    result = run_attack(VFGA(), flat, images, torch.zeros(len(images), dtype=torch.long))
    assert (result.forwards == 1).all()


def test_the_unit_of_one_direction_stands_for_both() -> None:
    grad = torch.tensor([[[[-1.0, -3.0, -2.0, 0.0]]]])
    adv = torch.full_like(grad, 0.5)
    edge = torch.tensor([[[[1.0, 1.0, 1.0, 0.5]]]])
    free = torch.tensor([[True, False, True, True]])
    pair, hope = two_units(grad, edge, adv, free, Units("elements"))
    assert pair.tolist() == [[2, 2]]
    assert hope.tolist() == [True]


def test_the_channels_of_a_pixel_move_by_the_same_share() -> None:
    adv = torch.tensor([0.5, 0.2, 0.6]).view(1, 3, 1, 1).repeat(2, 1, 1, 2)
    edge = torch.tensor([1.0, 0.0, 0.6]).view(1, 3, 1, 1).expand_as(adv)
    there = moved(adv, edge, torch.tensor([1, 1]), torch.tensor([0.5, 1.7]), Units("pixels"))
    torch.testing.assert_close(there[0, :, 0, 1], torch.tensor([0.75, 0.1, 0.6]))
    assert torch.equal(there[1, :, 0, 1], edge[1, :, 0, 1])
    assert torch.equal(there[:, :, 0, 0], adv[:, :, 0, 0])


def test_without_a_bound_on_steps_the_card_has_none() -> None:
    assert VFGA().facts().max_forwards is None
    facts = VFGA(steps=3, samples=4).facts()
    assert (facts.max_forwards, facts.max_backwards) == (27, 3)
