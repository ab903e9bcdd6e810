"""StrAttack against a plain loop for one image, its groups, its box."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick import BadInput, Classifier, Goal, build, run_attack
from pinprick.attacks import StrAttack
from pinprick.oracle import sure_images

SMALL: dict[str, Any] = {"steps": 12, "more_steps": 3, "searches": 3, "weight": 0.5}


def pull_of(model: Classifier, image: Tensor, change: Tensor, goal: Goal) -> tuple[bool, Tensor]:
    """Whether the changed image fools, and torch's own gradient of the hinge."""
    free = change.clone().requires_grad_()
    logits = model(image + free)
    goal.margin(logits).clamp(min=0).sum().backward()
    assert free.grad is not None
    return bool(goal.met(logits).all()), free.grad


def group_by_group(change: Tensor, by: float, side: int) -> Tensor:
    """The shrinkage with a loop over the groups."""
    shrunk = torch.zeros_like(change)
    for top in range(0, change.shape[2], side):
        for left in range(0, change.shape[3], side):
            part = change[:, :, top : top + side, left : left + side]
            norm = part.square().sum().sqrt().item()
            if norm > by:
                shrunk[:, :, top : top + side, left : left + side] = part * (1 - by / norm)
    return shrunk


def as_published(model: Classifier, image: Tensor, goal: Goal, attack: StrAttack) -> Tensor:
    """The two stages for one image; the shortest change that fooled, zero where none did."""
    low, high = (-image).clamp(min=-attack.eps), (1 - image).clamp(max=attack.eps)
    best, least, rho = torch.zeros_like(image), float("inf"), attack.rho
    z = u = s = v = best
    fails, works, c = 0.0, float("inf"), attack.weight
    for search in range(attack.searches):
        fooled = False
        for step in range(attack.steps + search * attack.more_steps):
            _, grad = pull_of(model, image, z, goal)
            d = rho / (rho + 2 * attack.gamma) * (z - u)
            w = (z - s).clamp(low, high)
            y = group_by_group(z - v, attack.tau / rho, attack.group).clamp(low, high)
            h = attack.alpha * (step + 1) ** 0.5
            z = h * z + 2 * rho * (d + u) + rho * (w + s) + rho * (y + v) - c * grad
            z = (z / (h + 4 * rho)).clamp(low, high)
            u, s, v = u + d - z, s + w - z, v + y - z
            met, _ = pull_of(model, image, y, goal)
            fooled |= met
            if met and y.square().sum().item() < least:
                best, least = y, y.square().sum().item()
        fails, works = (fails, min(works, c)) if fooled else (max(fails, c), works)
        c = c * 5 if works == float("inf") else (fails + works) / 2
    if least == float("inf"):
        return best
    fails, works, c = 0.0, float("inf"), attack.refine_weight
    for _ in range(attack.refine_searches):
        sizes = best[best != 0].abs()
        kept = (best.abs() > sizes.quantile(attack.share)).double()
        z, u, fooled = best, torch.zeros_like(best), False
        for _ in range(attack.refine_steps):
            d = (rho / (rho + attack.gamma / 100) * (z - u)).clamp(low, high) * kept
            met, grad = pull_of(model, image, d, goal)
            fooled |= met
            if met and d.square().sum().item() < least:
                best, least = d, d.square().sum().item()
            z = attack.alpha * z + 2 * rho * (d + u) - c * grad
            z = z / (attack.alpha + 2 * rho) * kept
            u = u + d - z
        fails, works = (fails, min(works, c)) if fooled else (max(fails, c), works)
        c = c * 5 if works == float("inf") else (fails + works) / 2
    return best


@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.parametrize("refined", [0, 3])
def test_follows_a_plain_loop_for_one_image(
    curved: Classifier, images: Tensor, curved_labels: Tensor, targeted: bool, refined: int
) -> None:
    targets = (curved_labels + 1) % 4 if targeted else None
    own: dict[str, Any] = {"keep": "l2", "rho": 1.0, "tau": 0.3, "refine_steps": 6}
    attack = StrAttack(refine_searches=refined, **own, **SMALL)
    result = run_attack(attack, curved, images, curved_labels, targets=targets)
    assert result.success.any()
    goal = Goal(curved_labels, targets)
    for row in range(len(images)):
        only = torch.tensor([row])
        with curved.frozen():
            change = as_published(curved, images[only], goal[only], attack)
        torch.testing.assert_close(result.adversarial[only], images[only] + change)


def test_whole_groups_change_or_none_where_nothing_is_refined(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    attack = StrAttack(rho=1.0, refine_searches=0, **{**SMALL, "steps": 60})
    result = run_attack(attack, linear, images, labels)
    assert result.success.all()
    changed = (result.adversarial != images).any(dim=1, keepdim=True).double()
    by_group = F.unfold(changed[:, :, :, :4], kernel_size=2, stride=2).sum(dim=1)  # full groups
    assert ((by_group == 0) | (by_group == 4)).all()
    assert (by_group == 0).any()


def test_a_heavier_weight_of_groups_leaves_fewer_of_them(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    settings = {**SMALL, "steps": 60, "rho": 1.0, "refine_searches": 0}
    few = run_attack(StrAttack(tau=2.0, **settings), linear, images, labels)
    many = run_attack(StrAttack(tau=0.0, **settings), linear, images, labels)
    assert few.success.all()
    assert many.success.all()
    assert few.l0_pixels.sum() < many.l0_pixels.sum()


def test_keeps_the_sparsest_or_the_shortest(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    settings = {**SMALL, "steps": 40, "rho": 1.0, "refine_searches": 0}
    short = run_attack(StrAttack(keep="l2", **settings), linear, images, labels)
    sparse = run_attack(StrAttack(keep="elements", **settings), linear, images, labels)
    assert (sparse.l0_elements <= short.l0_elements).all()
    assert (sparse.l2 >= short.l2).all()
    assert (sparse.l0_elements < short.l0_elements).any()


def test_changes_no_value_by_more_than_eps(linear: Classifier, images: Tensor) -> None:
    sure = sure_images(linear, images)
    with torch.no_grad():
        labels = linear(sure).argmax(dim=1)
    attack = build({"name": "strattack", "preset": "quick", "eps": 0.3})
    result = run_attack(attack, linear, sure, labels)
    assert result.success.any()
    assert (result.linf <= 0.3 + 1e-12).all()
    assert (result.linf > 0.2999).any()  # and some would have gone farther


def test_counts_two_forward_passes_a_step_and_one_in_the_refinement(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    attack = StrAttack(rho=1.0, refine_searches=2, refine_steps=7, **{**SMALL, "searches": 4})
    result = run_attack(attack, linear, images, labels)
    first = 12 + 15 + 18 + 21
    assert result.success.any()
    assert (result.forwards == 2 * first + 14 * result.success).all()
    assert (result.backwards == first + 14 * result.success).all()
    assert attack.facts().max_forwards == 2 * first + 14


def test_the_defaults_are_the_authors_and_quick_takes_a_thousand_passes() -> None:
    assert StrAttack().facts().max_forwards == 2 * 27_000 + 3200
    assert build({"name": "strattack", "preset": "quick"}).facts().max_forwards == 1000


def test_refuses_another_word_for_what_to_keep() -> None:
    with pytest.raises(BadInput, match="keep"):
        build({"name": "strattack", "keep": "l1"})


@pytest.mark.slow
def test_puts_back_fewer_elements_after_a_round_in_vain(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    quick = {"name": "strattack", "preset": "quick"}
    halved = run_attack(build(quick), linear, images, labels)
    whole = run_attack(build({**quick, "halve": False}), linear, images, labels)
    assert (halved.needed_elements <= whole.needed_elements).all()
    assert (halved.needed_elements < whole.needed_elements).any()
