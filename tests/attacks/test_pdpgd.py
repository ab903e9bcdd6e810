"""PDPGD against its update written out with torch's Adam, and its proximal steps by brute force."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from pinprick import Classifier, Goal, run_attack
from pinprick.attacks import PDPGD
from pinprick.attacks.pdpgd import shrink_powers
from pinprick.oracle import (
    exact_images,
    exact_linear,
    fewest_elements,
    fewest_pixels,
    sure_images,
)
from pinprick.parts.units import Units


def as_published(model: Classifier, images: Tensor, goal: Goal, attack: PDPGD) -> Tensor:
    """The published loop with the l0 step, by torch's optimiser, softplus and softmax."""
    delta = torch.zeros_like(images).requires_grad_()
    adam = torch.optim.Adam([delta], lr=1.0)
    log = images.new_zeros((len(images), 2))
    log[:, 1] = -math.log(attack.ratio)
    weights = log.softmax(dim=1)
    best, fewest = images.clone(), torch.full_like(images[:, 0, 0, 0], torch.inf)
    for step in range(attack.steps):
        logits = model(images + delta)
        margin = goal.margin(logits)
        (delta.grad,) = torch.autograd.grad(F.softplus(margin).sum(), delta)
        with torch.no_grad():
            count = (delta != 0).double().sum(dim=(1, 2, 3))
            better = (margin < 0) & (count < fewest)
            fewest[better], best[better] = count[better], (images + delta)[better]
            lr = attack.lr * attack.last_lr ** (step / attack.steps)
            adam.param_groups[0]["lr"] = lr
            adam.step()
            delta.copy_((images + delta).clamp(0, 1) - images)
            square = adam.state[delta]["exp_avg_sq"]
            scale = (square / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8
            mu = weights[:, 0] / weights[:, 1] * lr / scale.flatten(1).amax(dim=1)
            delta[delta.abs() < (2 * mu).sqrt().view(-1, 1, 1, 1)] = 0
            down = (attack.steps - 1 - step) / (attack.steps - 1)
            rate = attack.dual_lr * (down * (1 - attack.last_dual_lr) + attack.last_dual_lr)
            edge = -math.log(attack.least_ratio)
            log[:, 1] = (log[:, 1] + rate * margin.sign()).clamp(-edge, edge)
            weights = attack.memory * weights + (1 - attack.memory) * log.softmax(dim=1)
    return best


@pytest.mark.parametrize("targeted", [False, True])
def test_follows_the_published_recursion(
    curved: Classifier, images: Tensor, curved_labels: Tensor, targeted: bool
) -> None:
    targets = (curved_labels + 1) % 4 if targeted else None
    attack = PDPGD(steps=60)
    with curved.frozen():
        adv = as_published(curved, images, Goal(curved_labels, targets), attack)
    result = run_attack(attack, curved, images, curved_labels, targets=targets)
    assert result.success.any()
    torch.testing.assert_close(result.adversarial, adv, rtol=0, atol=1e-6)


@given(
    mu=st.floats(1e-6, 0.4),
    values=st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=8),
)
def test_the_step_of_powers_is_the_minimum(mu: float, values: list[float]) -> None:
    change = torch.tensor(values, dtype=torch.float64).view(1, 1, 1, -1)
    found = shrink_powers(change, torch.full_like(change[..., :1], mu), Units("elements"))
    grid = torch.linspace(0, 1, 2001, dtype=torch.float64).view(-1, 1)

    def cost(candidates: Tensor) -> Tensor:
        far = (candidates - change.flatten()).square() / 2
        return far + mu * candidates.abs().pow(2 / 3)

    assert (cost(found.flatten()) <= cost(grid * change.flatten()).amin(dim=0) + 1e-12).all()


def test_a_pixel_is_shortened_and_not_turned() -> None:
    change = torch.tensor([0.6, -0.8, 0.0]).view(1, 3, 1, 1)
    mu = torch.full((1, 1, 1, 1), 0.1)
    pixel = shrink_powers(change, mu, Units("pixels"))
    length = shrink_powers(torch.ones(1, 1, 1, 1), mu, Units("elements"))
    torch.testing.assert_close(pixel, change * length)
    assert 0 < length.item() < 1


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_the_exact_step_is_the_minimum_in_the_metric(unit: str) -> None:
    """Every set of units is tried on four of them."""
    units = Units("pixels" if unit == "pixels" else "elements")
    attack = PDPGD(prox="l0_exact", unit=units.unit)
    shape = (1, 2, 1, 4) if unit == "pixels" else (1, 1, 1, 4)
    uniform = torch.Generator().manual_seed(0)
    free = torch.rand(shape, generator=uniform, dtype=torch.float64) - 0.5
    scale = torch.rand(shape, generator=uniform, dtype=torch.float64) + 0.1
    weight = torch.full((1, 1, 1, 1), 0.05, dtype=torch.float64)
    found = attack._sparser(free, scale, weight, torch.full_like(free, 0.5))

    def cost(delta: Tensor) -> float:
        count = units.count(delta, torch.zeros_like(delta)).item()
        return (scale * (delta - free).square()).sum().item() / 2 + 0.05 * count

    sets = [torch.tensor([[bool(number >> bit & 1) for bit in range(4)]]) for number in range(16)]
    costs = [cost(free.where(units.spread(one, free), 0)) for one in sets]
    assert cost(found) == min(costs)
    assert 0 < units.count(found, torch.zeros_like(found)) < 4


@pytest.mark.parametrize("unit", ["elements", "pixels"])
@pytest.mark.parametrize(("prox", "factor"), [("l0_exact", 1.1), ("l2/3", 1.9)])
def test_comes_near_the_optimum_of_a_linear_model(prox: str, factor: float, unit: str) -> None:
    model = exact_linear(10, (3, 8, 8), seed=1)
    images = sure_images(model, exact_images(8, (3, 8, 8)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = PDPGD(
        prox="l2/3" if prox == "l2/3" else "l0_exact",
        unit="pixels" if unit == "pixels" else "elements",
        steps=200,
    )
    assert attack.facts().unit == unit
    result = run_attack(attack, model, images, labels)
    if unit == "pixels":
        ratio = result.needed_pixels / fewest_pixels(model, images, Goal(labels))
    else:
        ratio = result.needed_elements / fewest_elements(model, images, Goal(labels))
    assert (ratio >= 1).all()
    assert ratio.mean() <= factor


def test_grey_images_have_one_answer_in_both_units(images: Tensor) -> None:
    model, grey = exact_linear(4, (1, 6, 5)), images[:, :1]
    with torch.no_grad():
        labels = model(grey).argmax(dim=1)
    elements = run_attack(PDPGD(steps=40), model, grey, labels)
    pixels = run_attack(PDPGD(steps=40, unit="pixels"), model, grey, labels)
    assert torch.equal(elements.adversarial, pixels.adversarial)


def test_half_precision_is_no_obstacle(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    """Squares of small gradients would vanish, were the optimiser to work in half precision."""
    net = exact_linear(4, (3, 6, 5), dtype=torch.float16).net
    attack = PDPGD(steps=60, prox="l0_exact")
    half = run_attack(attack, net, images.half(), labels)
    full = run_attack(attack, linear, images, labels)
    assert half.success.all()
    assert half.needed_elements.mean() <= 1.2 * full.needed_elements.mean()


def test_a_single_step_is_enough_to_run(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    result = run_attack(PDPGD(steps=1), linear, images, labels)
    assert (result.forwards == 1).all()
    assert torch.equal(result.adversarial, images)
