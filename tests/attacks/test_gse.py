"""GSE against its own definition: the proximal step, the blur, the weights and the search."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from pinprick import Classifier, Goal, build, run_attack
from pinprick.attacks import GSE
from pinprick.attacks.gse import blur, shrink
from pinprick.explain.noise.groups import connected_groups
from pinprick.oracle import exact_images, exact_linear, sure_images


@given(value=st.floats(-2, 2), weight=st.floats(1e-6, 2))
def test_the_proximal_step_is_the_minimum_of_its_objective(value: float, weight: float) -> None:
    grid = torch.linspace(-2, 2, 40001, dtype=torch.double)
    cost = (grid - value).square() + weight * grid.abs().sqrt()
    found = shrink(torch.tensor(value).double(), torch.tensor(weight).double())
    assert (found - value).square() + weight * found.abs().sqrt() <= cost.min() + 1e-12


def test_the_proximal_step_is_the_published_formula() -> None:
    values = torch.linspace(-1.5, 1.5, 301, dtype=torch.double).view(1, 1, 7, 43)
    for weight in (1e-8, 0.01, 0.3):
        angle = torch.arccos((weight / 8 * (values.abs() / 3) ** -1.5).clamp(max=1))
        large = values * 2 / 3 * (1 + torch.cos(2 * math.pi / 3 - 2 * angle / 3))
        wanted = torch.where(values.abs() > 54 ** (1 / 3) / 4 * weight ** (2 / 3), large, 0)
        torch.testing.assert_close(shrink(values, torch.tensor(weight).double()), wanted)


def test_the_proximal_step_takes_any_weight() -> None:
    values = torch.tensor([0.0, 1e-30, 1.0])
    assert shrink(values, torch.tensor(torch.inf)).tolist() == [0, 0, 0]
    torch.testing.assert_close(shrink(values, torch.tensor(0.0)), values)


@pytest.mark.parametrize("shape", [(9, 7), (5, 3)])
def test_the_blur_is_a_gaussian_mirrored_at_the_edges(shape: tuple[int, int]) -> None:
    marked = torch.rand(3, 1, *shape, generator=torch.Generator().manual_seed(0)) < 0.2
    offsets = torch.arange(-2, 3).double()
    line = torch.exp(-(offsets**2) / (2 * 1.5**2))
    kernel = (line[:, None] * line[None] / line.sum() ** 2).view(1, 1, 5, 5)
    wanted = F.conv2d(F.pad(marked.double(), (2, 2, 2, 2), mode="reflect"), kernel)
    torch.testing.assert_close(blur(marked, 2, 1.5).double(), wanted, atol=1e-6, rtol=0)


def test_the_blur_of_a_single_pixel_is_itself() -> None:
    assert blur(torch.ones(1, 1, 1, 1, dtype=torch.bool), 2, 1.5).item() == pytest.approx(1)


def as_published(model: Classifier, image: Tensor, goal: Goal, attack: GSE) -> Tensor:
    """The searches for one image, with torch's own gradient; its best image, or the clean one."""

    def pull_at(change: Tensor) -> tuple[bool, Tensor]:
        free = change.clone().requires_grad_()
        logits = model(image + free)
        loss = goal.margin(logits) + mu * free.square().sum()
        loss.sum().backward()
        assert free.grad is not None
        return bool(goal.met(logits)), free.grad

    best, fewest, step, mu = image, math.inf, attack.step_size, attack.mu
    lam = works = 0.0
    fails = math.inf
    for search in range(attack.searches):
        change = before = torch.zeros_like(image)
        met, grad = pull_at(change)
        if search == 0:
            lam = 0.01 * (4 / 54 ** (1 / 3) * step * grad.abs().max().item()) ** 1.5 / step
        weights, t = torch.full_like(image[:, :1], lam), 1.0
        frozen = torch.zeros_like(weights, dtype=torch.bool)
        for number in range(attack.steps):
            next_t = (1 + math.sqrt(1 + 4 * t * t)) / 2
            if number == attack.freeze_after:
                frozen = weights > lam
                change = before = change.where(~frozen, 0)
            moved = change - step * grad
            if number < attack.freeze_after:
                moved = shrink(moved, step * weights)
            moved = moved.where(~frozen, 0)
            change, before, t = t / next_t * moved + (1 - t / next_t) * before, moved, next_t
            if number < attack.freeze_after:
                near = blur((change != 0).any(dim=1, keepdim=True), 2, 1.5)
                weights = weights / torch.where(near > 0, 1 + near, attack.q)
            change = (image + change).clamp(0, 1) - image
            met, grad = pull_at(change)
            if met:
                break
        if met:
            count = int((change != 0).any(dim=1).sum())
            if count < fewest:
                best, fewest = image + change, count
            works, lam = lam, 2 * lam if math.isinf(fails) else (lam + fails) / 2
        elif works:
            fails, lam = lam, works + 0.1 * (lam - works)
        else:
            step, mu, lam = step * attack.stretch, mu / attack.stretch, 2 * lam
    return best


@pytest.mark.parametrize("step_size", [0.02, 0.0005])
@pytest.mark.parametrize("targeted", [False, True])
def test_follows_the_published_searches(
    curved: Classifier, images: Tensor, curved_labels: Tensor, targeted: bool, step_size: float
) -> None:
    images, curved_labels = images[:4], curved_labels[:4]
    targets = (curved_labels + 1) % 4 if targeted else None
    attack = GSE(steps=40, freeze_after=10, searches=6, step_size=step_size, mu=0.2, keep="pixels")
    result = run_attack(attack, curved, images, curved_labels, targets=targets)
    with curved.frozen():
        for row, image in enumerate(images):
            one = slice(row, row + 1)
            goal = Goal(curved_labels[one], None if targets is None else targets[one])
            wanted = as_published(curved, image[None], goal, attack)
            torch.testing.assert_close(result.adversarial[one], wanted)
    assert result.success.any()


def test_changed_pixels_lie_together() -> None:
    """Weights that fall around changed pixels gather the change; without a blur it is spread."""
    model = exact_linear(4, (3, 24, 24), seed=1)
    images = sure_images(model, exact_images(3, (3, 24, 24)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    steps = {"steps": 40, "searches": 4, "freeze_after": 8, "step_size": 0.5, "mu": 0.01}
    per_cluster = []
    for reach in (2, 0):
        attack = build({"name": "gse", "reach": reach, "first_weight": 0.3, **steps})
        result = run_attack(attack, model, images, labels)
        assert result.success.all()
        changed = (result.adversarial != images).any(dim=1)
        clusters = connected_groups(changed, radius=0, corners=False).count
        per_cluster.append((result.l0_pixels / clusters).mean().item())
    assert per_cluster[0] > 10 * per_cluster[1]


def test_keeps_the_fewest_windows_or_pixels(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    spec = {"name": "gse", "steps": 40, "freeze_after": 10, "step_size": 0.02, "mu": 0.2}
    windows, pixels = (
        run_attack(build({**spec, "keep": keep}), curved, images, curved_labels)
        for keep in ("windows", "pixels")
    )
    assert torch.equal(windows.success, pixels.success)
    assert (pixels.needed_pixels <= windows.needed_pixels)[pixels.success].all()


def test_an_image_that_resists_gets_longer_steps(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    short = {"name": "gse", "steps": 20, "searches": 6, "step_size": 1e-5}
    never = run_attack(build({**short, "stretch": 1.0}), curved, images, curved_labels)
    later = run_attack(build({**short, "stretch": 10.0}), curved, images, curved_labels)
    assert not never.success.any()
    assert later.success.all()


def test_a_search_ends_once_the_image_fools(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    attack = GSE(steps=200, searches=1, step_size=0.05, mu=0.0)
    result = run_attack(attack, curved, images, curved_labels)
    assert result.success.all()
    assert len(set(result.forwards.tolist())) > 1
    assert (result.forwards < 201).all()
    assert torch.equal(result.forwards, result.backwards)
