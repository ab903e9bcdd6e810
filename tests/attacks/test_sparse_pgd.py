"""sparse-PGD against the published recursion by automatic differentiation, and the oracle."""

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams, build, run_attack
from pinprick.attacks import SparsePGD
from pinprick.oracle import exact_images, exact_linear, fewest_elements, fewest_pixels, sure_images


def as_published(
    model: Classifier, image: Tensor, goal: Goal, attack: SparsePGD, streams: Streams
) -> tuple[Tensor, int]:
    """The published loop for one image, its gradients by autograd, and how often it drew anew.

    The k largest are let through as they are forwards, and as the sigmoid backwards.
    """
    draw = streams.uniform(*image.shape[1:], step=0, use="sparse_pgd change").double()
    change = (2 * draw - 1).clamp(-image, 1 - image)
    places = image.shape[2] * image.shape[3]
    mask = streams.normal(places, step=0, use="sparse_pgd mask")
    best, lowest, idle, redraws = image, torch.inf, 0, 0
    for step in range(attack.steps + 1):
        change, mask = change.detach().requires_grad_(), mask.detach().requires_grad_()
        soft = mask.sigmoid().view(1, 1, *image.shape[2:])
        order = mask.detach().argsort(descending=True)[: attack.k]
        hard = torch.zeros(places).scatter(0, order.flatten(), 1.0).view_as(soft)
        chosen = hard.flatten() > 0
        through = soft + (hard - soft).detach()
        logits = model(image + change * through)
        if not attack.projected:
            logits = model(image + change * soft + (change * hard - change * soft).detach())
        loss = goal.cross_entropy(logits)
        if goal.met(logits) or loss.item() < lowest:
            best = (image + change * hard).detach()
            lowest = -torch.inf if goal.met(logits) else loss.item()
        if goal.met(logits) or step == attack.steps:
            return best, redraws
        slope_change, slope_mask = torch.autograd.grad(loss.sum(), (change, mask))
        with torch.no_grad():
            change = change - attack.step_size * slope_change.sign()
            change = change.clamp(-image, 1 - image)
            if slope_mask.norm() > 0:
                length = attack.mask_step * places**0.5
                mask = mask - length * slope_mask / slope_mask.norm()
            after = mask.flatten().argsort(descending=True)[: attack.k]
            idle = idle + 1 if chosen[after].all() else 0
            if idle >= attack.patience:
                mask = streams.normal(places, step=step + 1, use="sparse_pgd mask")
                idle, redraws = 0, redraws + 1
    raise AssertionError


class OneAtATime(Streams):
    """A stream of a single image whose draws have no dimension for the batch."""

    def normal(self, *shape: int, step: int, use: str) -> Tensor:
        return super().normal(*shape, step=step, use=use)[0]


@pytest.mark.parametrize("projected", [True, False])
@pytest.mark.parametrize("targeted", [False, True])
def test_follows_the_published_recursion(
    curved: Classifier, images: Tensor, curved_labels: Tensor, projected: bool, targeted: bool
) -> None:
    targets = (curved_labels + 1) % 4 if targeted else None
    attack = SparsePGD(k=2, steps=12, projected=projected)
    result = run_attack(attack, curved, images, curved_labels, targets=targets, seed=3)
    redraws = 0
    with curved.frozen():
        for row in range(len(images)):
            only = torch.tensor([row])
            goal = Goal(curved_labels, targets)[only]
            streams = OneAtATime(3, only)
            adv, drawn = as_published(curved, images[only], goal, attack, streams)
            redraws += drawn
            torch.testing.assert_close(result.adversarial[only], adv, atol=1e-6, rtol=0)
    if not targeted:
        assert redraws > 0  # patience was tried, too


def test_never_changes_more_than_k(curved: Classifier, images: Tensor) -> None:
    with torch.no_grad():
        labels = curved(images).argmax(dim=1)
    for k in (1, 4, 1000):
        result = run_attack(SparsePGD(k=k, steps=8), curved, images, labels)
        assert (result.l0_pixels <= k).all()
    result = run_attack(SparsePGD(k=4, steps=8, unit="elements"), curved, images, labels)
    assert (result.l0_elements <= 4).all()


def test_the_unprojected_change_moves_everywhere_and_the_projected_where_it_shows(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    chosen = torch.zeros(len(images), 30, dtype=torch.bool)
    chosen[:, 4] = True
    problem = Problem(linear, images, Goal(labels), Streams(0, torch.arange(len(images))))
    for projected, places in ((True, 1), (False, 30)):
        attack = SparsePGD(projected=projected)
        moved = attack._move(problem, torch.ones_like(images), images, chosen)
        assert ((moved != images).any(dim=1).flatten(1).sum(dim=1) == places).all()
        torch.testing.assert_close(moved[:, :, 0, 4], (images[:, :, 0, 4] - 0.25).clamp(min=0))


def test_eps_bounds_every_value(curved: Classifier, images: Tensor) -> None:
    with torch.no_grad():
        labels = curved(images).argmax(dim=1)
    result = run_attack(SparsePGD(k=10, eps=0.1, steps=8), curved, images, labels)
    assert (result.linf <= 0.1 + 1e-12).all()
    assert (result.l0_pixels > 0).all()


@pytest.mark.parametrize("projected", [True, False])
@pytest.mark.parametrize("unit", ["pixels", "elements"])
def test_the_smallest_k_comes_near_the_optimum_of_a_linear_model(
    unit: str, projected: bool
) -> None:
    model = exact_linear(4, (3, 8, 8), seed=4)
    images = sure_images(model, exact_images(16, (3, 8, 8), seed=6))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    spec = {"name": "sparse_pgd", "k": "smallest", "steps": 40}
    attack = build({**spec, "unit": unit, "projected": projected})
    assert attack.facts().kind == "minimal"
    result = run_attack(attack, model, images, labels)
    needed = result.needed_pixels if unit == "pixels" else result.needed_elements
    fewest = fewest_pixels if unit == "pixels" else fewest_elements
    ratio = needed / fewest(model, images, Goal(labels))
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.15
