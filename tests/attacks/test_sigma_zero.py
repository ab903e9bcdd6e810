"""σ-zero against torch's own Adam and schedule, and where it stops."""

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, run_attack
from pinprick.attacks import SigmaZero
from pinprick.oracle import (
    exact_images,
    exact_linear,
    fewest_elements,
    fewest_pixels,
    sure_images,
)


def as_published(
    model: Classifier, images: Tensor, goal: Goal, attack: SigmaZero
) -> tuple[Tensor, Tensor]:
    """The published loop, with torch's optimiser and scheduler, and its best counts."""
    delta = torch.zeros_like(images).requires_grad_()
    adam = torch.optim.Adam([delta], lr=attack.lr)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, attack.steps, attack.lr / 10)
    tau = torch.full_like(images[:, :1, :1, :1], attack.threshold)
    best, fewest = images.clone(), torch.full_like(images[:, 0, 0, 0], torch.inf)
    for _ in range(attack.steps):
        logits = model(images + delta)
        met = goal.met(logits)
        smooth = (delta**2 / (delta**2 + attack.sigma)).mean(dim=(1, 2, 3))
        (delta.grad,) = torch.autograd.grad(
            (goal.margin(logits).clamp(min=0) + smooth).sum(), delta
        )
        with torch.no_grad():
            count = (delta != 0).double().sum(dim=(1, 2, 3))
            better = met & (count < fewest)
            fewest[better], best[better] = count[better], (images + delta)[better]
            delta.grad /= delta.grad.abs().amax(dim=(1, 2, 3), keepdim=True).clamp(min=1e-12)
            adam.step()
            delta.copy_((images + delta).clamp(0, 1) - images)
            cosine.step()
            shift = attack.threshold_rate * cosine.get_last_lr()[0]
            tau += torch.where(met.view(-1, 1, 1, 1), shift, -shift)
            tau.clamp_(0, 1)
            delta[delta.abs() < tau] = 0
    return best, fewest


@pytest.mark.parametrize("targeted", [False, True])
def test_follows_the_published_recursion(
    curved: Classifier, images: Tensor, curved_labels: Tensor, targeted: bool
) -> None:
    targets = (curved_labels + 1) % 4 if targeted else None
    attack = SigmaZero(steps=50)
    with curved.frozen():
        adv, fewest = as_published(curved, images, Goal(curved_labels, targets), attack)
    result = run_attack(attack, curved, images, curved_labels, targets=targets)
    assert torch.equal(result.needed_elements, fewest)
    assert fewest.isfinite().any()
    torch.testing.assert_close(result.adversarial, adv)


@pytest.mark.parametrize("classes", [2, 10])
def test_comes_near_the_optimum_of_a_linear_model(classes: int) -> None:
    model = exact_linear(classes, (3, 8, 8), seed=1)
    images = sure_images(model, exact_images(8, (3, 8, 8)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(SigmaZero(steps=100), model, images, labels)
    ratio = result.needed_elements / fewest_elements(model, images, Goal(labels))
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.1


def test_a_stop_spares_passes_and_changes_nothing_for_the_others(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    whole = run_attack(SigmaZero(steps=80), linear, images, labels)
    budget = int(whole.needed_elements.median())
    stopped = run_attack(SigmaZero(steps=80, stop_at=budget), linear, images, labels)
    early = whole.needed_elements <= budget
    assert early.any()
    assert (~early).any()
    assert (stopped.needed_elements[early] <= budget).all()
    assert (stopped.forwards[early] < 80).all()
    assert torch.equal(stopped.forwards, stopped.backwards)
    assert (stopped.forwards[~early] == 80).all()
    assert torch.equal(stopped.adversarial[~early], whole.adversarial[~early])


def test_half_precision_is_no_obstacle(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    """Squares of small gradients would vanish, were the optimiser to work in half precision."""
    net = exact_linear(4, (3, 6, 5), dtype=torch.float16).net
    half = run_attack(SigmaZero(steps=60), net, images.half(), labels)
    full = run_attack(SigmaZero(steps=60), linear, images, labels)
    assert half.success.all()
    assert half.needed_elements.mean() <= 1.2 * full.needed_elements.mean()


@pytest.mark.parametrize("classes", [2, 10])
def test_pixels_come_near_the_fewest_of_a_linear_model(classes: int) -> None:
    """Counting elements needs 1.7 times as many pixels here."""
    model = exact_linear(classes, (3, 8, 8), seed=1)
    images = sure_images(model, exact_images(8, (3, 8, 8)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = SigmaZero(steps=100, unit="pixels")
    assert attack.facts().unit == "pixels"
    ratio = run_attack(attack, model, images, labels).needed_pixels
    ratio = ratio / fewest_pixels(model, images, Goal(labels))
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.15


def test_grey_images_have_one_answer_in_both_units(images: Tensor) -> None:
    model, grey = exact_linear(4, (1, 6, 5)), images[:, :1]
    with torch.no_grad():
        labels = model(grey).argmax(dim=1)
    elements, pixels = (
        run_attack(SigmaZero(steps=40, unit=unit), model, grey, labels)
        for unit in ("elements", "pixels")
    )
    assert torch.equal(elements.adversarial, pixels.adversarial)


def test_a_stop_counts_the_unit(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    whole = run_attack(SigmaZero(steps=60, unit="pixels"), linear, images, labels)
    budget = int(whole.needed_pixels.median())
    assert budget < whole.l0_elements[whole.needed_pixels <= budget].max()
    stopped = run_attack(SigmaZero(steps=60, unit="pixels", stop_at=budget), linear, images, labels)
    assert (stopped.forwards[whole.needed_pixels <= budget] < 60).all()
