"""C&W L0 against a loop for one image, the optimum of linear models, and its rounds taken back."""

import math
from dataclasses import replace
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from pinprick import BadInput, Classifier, Goal, build, run_attack
from pinprick.attacks import CWL0
from pinprick.attacks.cw_l0 import choose_least
from pinprick.oracle import exact_images, exact_linear, fewest_elements, fewest_pixels, sure_images


def quick(**settings: Any) -> CWL0:
    attack = build({"name": "cw_l0", "preset": "quick", **settings})
    assert isinstance(attack, CWL0)
    return attack


def one_by_one(
    model: Classifier, image: Tensor, goal: Goal, attack: CWL0
) -> tuple[Tensor, float, int]:
    """The rounds for a single image, with torch's optimiser and its own derivatives."""
    free = ((2 * image - 1) * 0.999999).atanh()
    shut = torch.zeros(image[0, 0].numel(), dtype=torch.bool)
    best, fewest, weight, passes = image, math.inf, attack.weight, 0
    while not shut.all():
        free = free.clamp(-math.atanh(0.999999), math.atanh(0.999999)).requires_grad_()
        adam, clock = torch.optim.Adam([free], lr=attack.lr), 0
        while True:
            opened = ~shut.view(image.shape[2:])
            adv = torch.where(opened, (free.tanh() + 1) / 2, image)
            snapped = torch.where((adv - image).abs() < 1e-4, image, adv).detach()
            asked = snapped.requires_grad_()
            logits = model(asked)
            passes += 1
            (rise,) = torch.autograd.grad(goal.margin(logits).sum(), asked)
            hinge = max(0.0, goal.margin(logits).item() + 0.01)
            square = (adv - image).square().sum()
            push = weight * (rise * adv).sum() if hinge > 0 else 0 * adv.sum()
            (by_free,) = torch.autograd.grad(square + push, free)
            changed = int((snapped != image).any(dim=1).sum())
            if goal.met(logits) and changed < fewest:
                best, fewest = snapped.detach(), changed
            if hinge < 1e-4:
                break
            free.grad = by_free
            adam.step()
            clock += 1
            if clock == attack.steps:
                weight, clock = 2 * weight, 0
                if weight >= attack.last_weight:
                    return best, fewest, passes
        delta = (adv - image).detach()
        if attack.ranking == "paper":
            scores = (-rise * delta).sum(dim=1).flatten()
        else:
            scores = (delta.sum(dim=1).abs() * by_free.abs().sum(dim=1)).flatten()
        done = 0
        for place in scores.masked_fill(shut, math.inf).argsort(stable=True).tolist():
            shut[place], done = True, done + 1
            if scores[place] > 0.01 or done >= 0.3 * math.sqrt(changed) or shut.all():
                break
        free = free.detach()
    return best, fewest, passes


@pytest.mark.slow
@pytest.mark.parametrize("ranking", ["paper", "reference"])
@pytest.mark.parametrize("targeted", [False, True])
def test_in_lock_step_each_image_goes_its_own_way(
    curved: Classifier,
    images: Tensor,
    curved_labels: Tensor,
    ranking: Literal["paper", "reference"],
    targeted: bool,
) -> None:
    images, curved_labels = images[:3], curved_labels[:3]
    attack = CWL0(steps=8, lr=0.2, weight=0.1, last_weight=3.0, ranking=ranking)
    goal = Goal(curved_labels, (curved_labels + 1) % 4 if targeted else None)
    result = run_attack(attack, curved, images, curved_labels, targets=goal.targets)
    assert result.success.any()
    assert len(set(result.forwards.tolist())) > 1
    for row in range(len(images)):
        only = torch.tensor([row])
        with curved.frozen():
            adv, fewest, passes = one_by_one(curved, images[only], goal[only], attack)
        assert result.needed_pixels[row].item() == fewest
        assert result.forwards[row].item() == result.backwards[row].item() == passes
        torch.testing.assert_close(result.adversarial[only], adv)


def case(classes: int = 4) -> tuple[Classifier, Tensor, Goal]:
    model = exact_linear(classes, (3, 8, 8), seed=1)
    images = sure_images(model, exact_images(64, (3, 8, 8)))
    with torch.no_grad():
        return model, images, Goal(model(images).argmax(dim=1))


@pytest.mark.slow
def test_comes_near_the_fewest_of_a_linear_model_in_either_unit() -> None:
    model, images, goal = case()
    for unit, fewest in (("pixels", fewest_pixels), ("elements", fewest_elements)):
        result = run_attack(quick(unit=unit), model, images, goal.labels)
        ratio = getattr(result, f"needed_{unit}") / fewest(model, images, goal)
        assert (ratio >= 1).all()
        assert ratio.mean() <= 1.05


@pytest.mark.slow
def test_the_papers_ranking_is_better_than_its_codes() -> None:
    model, images, goal = case()
    paper, reference = (
        run_attack(quick(ranking=ranking), model, images, goal.labels).needed_pixels.mean()
        for ranking in ("paper", "reference")
    )
    assert 1.1 * paper < reference < 2 * paper


@pytest.mark.slow
def test_rounds_that_were_too_large_are_taken_back(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    coarse = quick(share=0.6, halve=False)
    final = run_attack(coarse, linear, images, labels)
    mended = run_attack(replace(coarse, halve=True), linear, images, labels)
    assert final.success.all()
    assert (mended.needed_pixels <= final.needed_pixels).all()
    assert mended.needed_pixels.mean() < 0.8 * final.needed_pixels.mean()
    assert (mended.forwards > final.forwards).any()


def test_what_is_not_changed_is_as_it_was(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(quick(), linear, images, labels)
    change = (result.adversarial - images).abs()
    assert result.success.all()
    assert ((change == 0) | (change >= 0.99e-4)).all()
    assert (change == 0).float().mean() > 0.5


def test_starts_also_at_the_corners_of_the_box() -> None:
    model = exact_linear(4, (3, 6, 5))
    images = (exact_images(6, (3, 6, 5)) > 0.5).double()
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(quick(), model, images, labels)
    assert result.success.all()
    fewest = fewest_pixels(model, images, Goal(labels))
    assert (result.needed_pixels / fewest).mean() <= 1.25


def test_the_card_says_what_the_settings_cost() -> None:
    assert CWL0().facts().max_forwards is None
    assert quick().facts().max_forwards == quick().facts().max_backwards == 1000
    assert CWL0(unit="elements").facts().unit == "elements"


@pytest.mark.parametrize("last_weight", [1e-4, 1e-3])
def test_refuses_a_last_weight_that_is_no_larger_than_the_first(last_weight: float) -> None:
    with pytest.raises(BadInput, match=r"cw_l0 needs weight below last_weight, got 0.001 and"):
        CWL0(last_weight=last_weight)


def test_freezes_the_least_up_to_the_first_that_matters() -> None:
    scores = torch.tensor([0.5, 0.004, 0.02, 0.009]).expand(4, 4)
    is_open = torch.ones(4, 4, dtype=torch.bool)
    is_open[3, 1] = False
    changed = torch.tensor([100.0, 4.0, 100.0, 100.0])
    rank, number = choose_least(scores, is_open, changed, share=0.0)
    assert rank[:3].tolist() == [[3, 0, 2, 1]] * 3
    assert rank[3].tolist() == [2, 3, 1, 0]  # what is frozen comes last
    assert number.tolist() == [3, 1, 3, 2]  # 0.3 * sqrt(4) is the less in the second
    assert choose_least(scores, is_open, changed, share=0.8)[1].tolist() == [4, 4, 4, 3]
