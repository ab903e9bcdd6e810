"""C&W L2 against the published loop, the nearest boundary of a linear model, and its confidence."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, build, run_attack
from pinprick.attacks import CWL2
from pinprick.oracle import exact_images, exact_linear, nearest_l2


def as_published(
    model: Classifier, image: Tensor, goal: Goal, attack: CWL2
) -> tuple[Tensor, Tensor]:
    """The published loop for one image, with torch's optimiser and its own derivatives."""
    low, high, weight = 0.0, float("inf"), attack.weight
    best, least = image.clone(), torch.tensor(torch.inf).double()
    for _ in range(attack.searches):
        free = ((2 * image - 1) * 0.999999).atanh().requires_grad_()
        adam, fooled, last = torch.optim.Adam([free], lr=attack.lr), False, float("inf")
        for step in range(attack.steps):
            adv = (free.tanh() + 1) / 2
            logits = model(adv)
            square = (adv - image).square().sum()
            loss = square + weight * goal.margin(logits).clamp(min=0).sum()
            if goal.met(logits).all():
                fooled = True
                if square < least:
                    best, least = adv.detach(), square.detach()
            adam.zero_grad()
            loss.backward()
            adam.step()
            if attack.stop_early and (step + 1) % max(1, attack.steps // 10) == 0:
                if loss.item() >= 0.9999 * last:
                    break
                last = loss.item()
        low, high = (low, min(high, weight)) if fooled else (max(low, weight), high)
        weight = weight * 10 if high == float("inf") else (low + high) / 2
    return best, least.sqrt()


@pytest.mark.parametrize("targeted", [False, True])
def test_follows_the_published_loop(
    curved: Classifier, images: Tensor, curved_labels: Tensor, targeted: bool
) -> None:
    targets = (curved_labels + 1) % 4 if targeted else None
    attack = CWL2(steps=30, searches=4, lr=0.1, weight=0.01)
    result = run_attack(attack, curved, images, curved_labels, targets=targets)
    assert result.success.any()
    goal = Goal(curved_labels, targets)
    for row in range(len(images)):
        only = torch.tensor([row])
        with curved.frozen():
            adv, length = as_published(curved, images[only], goal[only], attack)
        assert result.success[row] == length.isfinite()
        torch.testing.assert_close(result.adversarial[only], adv)


@pytest.mark.slow
def test_comes_near_the_nearest_boundary() -> None:
    model, images = exact_linear(4, (3, 8, 8), seed=4), exact_images(64, (3, 8, 8), seed=6)
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = build({"name": "cw_l2", "preset": "quick"})
    result = run_attack(attack, model, images, labels)
    ratio = result.l2 / nearest_l2(model, images, Goal(labels))
    assert result.success.all()
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.05


def test_meets_the_goal_with_confidence_where_it_meets_it(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    settings: dict[str, Any] = {"steps": 60, "searches": 4, "lr": 0.1, "weight": 0.1}
    plain = run_attack(CWL2(**settings), linear, images, labels)
    sure = run_attack(CWL2(confidence=0.5, **settings), linear, images, labels)
    assert sure.success.all()
    assert (Goal(labels).margin(sure.adversarial_logits) <= -0.5).all()
    assert (sure.l2 > plain.l2).all()


def test_a_search_that_stands_still_is_left(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    settings: dict[str, Any] = {"steps": 200, "searches": 2, "lr": 0.1, "weight": 1.0}
    early = run_attack(CWL2(**settings), linear, images, labels)
    whole = run_attack(CWL2(stop_early=False, **settings), linear, images, labels)
    assert (early.forwards < 400).any()
    assert (early.forwards % 20 == 0).all()
    assert (whole.forwards == 400).all()


def test_the_quick_preset_takes_a_thousand_passes() -> None:
    assert build({"name": "cw_l2", "preset": "quick"}).facts().max_forwards == 1000
