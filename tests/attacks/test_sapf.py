"""SAPF against a plain loop for one image, its gates against closed forms, its passes and its k."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, build, run_attack
from pinprick.attacks import SAPF
from pinprick.attacks.sapf import Gates, into_sphere
from pinprick.oracle import fewest_elements, sure_images

SMALL: dict[str, Any] = {
    "k": 12,
    "steps": 10,
    "gate_steps": 12,
    "tune_steps": 8,
    "searches": 3,
    "weight": 0.3,
    "decay_every": 3,
    "rho": 0.05,
    "rho_sum": 2e-3,
    "rho_growth": 1.3,
}
QUICK = {"name": "sapf", "preset": "quick"}
FAST = {**QUICK, "steps": 20, "gate_steps": 25, "tune_steps": 15, "searches": 2, "weight": 1.0}
FAST |= {"decay_every": 1, "rho_growth": 1.4}


def hinge(model: Classifier, image: Tensor, change: Tensor, goal: Goal) -> tuple[bool, Tensor]:
    """Whether the changed image fools, and the hinge, with the image clamped inside the graph."""
    logits = model((image + change).clamp(0, 1))
    return bool(goal.met(logits).all()), goal.margin(logits).clamp(min=0).sum()


def as_published(model: Classifier, image: Tensor, goal: Goal, attack: SAPF) -> Tensor | None:
    """All searches for one image, by torch's own gradients; the shortest change that fooled."""
    best, least, number = None, float("inf"), image.numel()
    assert isinstance(attack.k, int)
    fails, works, c = 0.0, float("inf"), attack.weight
    for _ in range(attack.searches):
        e, gate = torch.zeros_like(image), torch.ones_like(image)
        z, z4 = [torch.zeros_like(image) for _ in range(3)], 0.0
        for step in range(attack.steps):
            free = e.clone().requires_grad_()
            (free * gate).square().sum().add(
                c * hinge(model, image, free * gate, goal)[1]
            ).backward()
            assert free.grad is not None
            e = e - max(0.1 * 0.9 ** (step // attack.decay_every), 1e-3) * free.grad
        for step in range(attack.gate_steps):
            r = min(attack.rho * attack.rho_growth**step, 20.0)
            r3 = min(attack.rho * attack.rho_growth**step, 100.0)
            r4 = min(attack.rho_sum * attack.rho_growth**step, 0.01) * 3072 / number
            y1 = (gate + z[0] / r).clamp(0, 1)
            off = gate + z[1] / r - 0.5
            y2 = 0.5 + off / off.norm() * number**0.5 / 2
            y3 = torch.zeros_like(gate)
            for top in range(0, image.shape[2], attack.group):
                for left in range(0, image.shape[3], attack.group):
                    at = (..., slice(top, top + attack.group), slice(left, left + attack.group))
                    part = (gate + z[2] / r3)[at]
                    y3[at] = part * max(0.0, 1 - attack.group_weight / (r3 * part.norm().item()))
            free = gate.clone().requires_grad_()
            (e * free).square().sum().add(c * hinge(model, image, e * free, goal)[1]).backward()
            assert free.grad is not None
            pull = free.grad + z[0] + z[1] + z[2] + z4
            pull = pull + r * (gate - y1) + r * (gate - y2) + r3 * (gate - y3)
            pull = pull + r4 * (gate.sum() - attack.k)
            gate = gate - max(0.1 * 0.9 ** (step // attack.decay_every), 1e-3) * pull
            z = [z[0] + r * (gate - y1), z[1] + r * (gate - y2), z[2] + r3 * (gate - y3)]
            z4 = z4 + r4 * (gate.sum().item() - attack.k)
        open_ones = gate.flatten().argsort(descending=True)[: attack.k]
        gate = torch.zeros(number, dtype=image.dtype).index_fill(0, open_ones, 1.0).view_as(image)
        fooled = False
        for step in range(attack.steps, attack.steps + attack.tune_steps):
            free = e.clone().requires_grad_()
            met, loss = hinge(model, image, free * gate, goal)
            change = (image + e * gate).clamp(0, 1) - image
            fooled |= met
            if met and change.square().sum().item() < least:
                best, least = change, change.square().sum().item()
            (free * gate).square().sum().add(c * loss).backward()
            assert free.grad is not None
            e = e - max(0.1 * 0.9 ** (step // attack.decay_every), 1e-3) * free.grad
        fails, works = (fails, min(works, c)) if fooled else (max(fails, c), works)
        c = c * 10 if works == float("inf") else (fails + works) / 2
    return best


@pytest.mark.slow
@pytest.mark.parametrize("targeted", [False, True])
def test_follows_a_plain_loop_for_one_image(
    curved: Classifier, images: Tensor, curved_labels: Tensor, targeted: bool
) -> None:
    targets = (curved_labels + 1) % 4 if targeted else None
    attack = SAPF(**{**SMALL, "k": 60 if targeted else 12})
    result = run_attack(attack, curved, images, curved_labels, targets=targets)
    assert result.success.any()
    goal = Goal(curved_labels, targets)
    for row in range(3):
        only = torch.tensor([row])
        with curved.frozen():
            change = as_published(curved, images[only], goal[only], attack)
        assert bool(result.success[row]) == (change is not None)
        if change is not None:
            torch.testing.assert_close(result.adversarial[only], images[only] + change)


def test_no_point_of_the_sphere_is_nearer() -> None:
    point = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)).double()
    free = torch.ones_like(point)
    free[1, :, :2] = 0
    on = into_sphere(point, free)
    assert (on[1, :, :2] == 0).all()
    square = ((on - 0.5) * free).square().sum(dim=(1, 2, 3))
    torch.testing.assert_close(square, free.sum(dim=(1, 2, 3)) / 4)
    distance = ((on - point) * free).square().sum(dim=(1, 2, 3))
    for seed in range(50):
        other = torch.randn(point.shape, generator=torch.Generator().manual_seed(seed)).double()
        other = into_sphere(point + other, free)
        assert (((other - point) * free).square().sum(dim=(1, 2, 3)) >= distance).all()


def test_binary_points_are_on_the_sphere() -> None:
    corners = (torch.rand(3, 1, 4, 5, generator=torch.Generator().manual_seed(0)) > 0.4).double()
    torch.testing.assert_close(into_sphere(corners, torch.ones_like(corners)), corners)


def test_gates_become_binary_and_choose_what_costs_least() -> None:
    cost = torch.rand(2, 3, 6, 6, generator=torch.Generator().manual_seed(0)).double()
    k = torch.tensor([9, 30])
    gates = Gates(torch.ones_like(cost), k, group=3, group_weight=1e-3)
    for step in range(2000):
        grown = 1.01**step
        gates.step(cost, max(0.1 * 0.9 ** (step // 50), 1e-3), 5e-3 * grown, 1e-4 * grown)
    values = gates.values.flatten(1)
    torch.testing.assert_close(values, values.round(), atol=0.02, rtol=0)
    chosen = (values > 0.5).sum(dim=1)
    assert ((chosen - k).abs() <= 1).all()  # as near as the relaxation comes; then the k largest
    for row in range(2):
        ranks = cost[row].flatten().argsort().argsort()[values[row] > 0.5]
        assert ranks.max() <= 1.3 * k[row]  # of all 108


def test_opens_no_more_than_k_and_uses_them(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    for k in (5, 20):
        result = run_attack(build({**FAST, "k": k}), linear, images, labels)
        assert (result.l0_elements <= k).all()
        assert (result.l0_elements == k).any()
        assert result.success.any()


def test_more_elements_make_a_shorter_change(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    few = run_attack(build({**FAST, "k": 10}), linear, images, labels)
    many = run_attack(build({**FAST, "k": 90}), linear, images, labels)
    both = few.success & many.success
    assert both.any()
    assert many.l2[both].sum() < 0.8 * few.l2[both].sum()


@pytest.mark.slow
def test_the_smallest_k_is_near_the_fewest_elements(linear: Classifier, images: Tensor) -> None:
    sure = sure_images(linear, images)
    with torch.no_grad():
        labels = linear(sure).argmax(dim=1)
    attack = build({**QUICK, "k": "smallest"})
    result = run_attack(attack, linear, sure, labels)
    fewest = fewest_elements(linear, sure, Goal(labels))
    assert (result.needed_elements / fewest).mean() <= 1.15
    assert attack.facts().kind == "minimal"


def test_a_k_beyond_the_image_is_all_of_it(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    allowed = torch.zeros_like(images, dtype=torch.bool)
    allowed[:, :, :2] = True
    result = run_attack(build(FAST), linear, images, labels, allowed=allowed)
    assert result.success.any()
    assert (result.l0_elements <= 30).all()


def test_hands_back_its_best_try_where_it_fails(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(build({**FAST, "k": 1}), linear, images, labels)
    failed = ~result.success
    assert failed.any()
    assert (result.l0_elements[failed] == 1).any()
    before = result.goal.cross_entropy(result.clean_logits)
    after = result.goal.cross_entropy(result.adversarial_logits)
    assert (after[failed] <= before[failed]).all()


def test_counts_one_pass_of_each_kind_a_step(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(SAPF(turns=2, **SMALL), linear, images, labels)
    each = 3 * (2 * (10 + 12) + 8)
    assert (result.forwards == each).all()
    assert (result.backwards == each).all()


def test_the_defaults_are_the_authors_and_quick_takes_a_thousand_passes() -> None:
    assert SAPF().facts().max_forwards == 6 * 5000
    assert build(QUICK).facts().max_forwards == 1000
