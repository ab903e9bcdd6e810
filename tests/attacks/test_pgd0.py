"""PGD-0: its projection against all choices of pixels, a step by hand, and the oracle."""

from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import BadInput, Classifier, Goal, Problem, Streams, build, run_attack
from pinprick.attacks import PGD0
from pinprick.oracle import exact_images, exact_linear, fewest_elements, fewest_pixels, sure_images
from pinprick.parts.sigma_map import sigma_lines, sigma_map


def problem(images: Tensor, allowed: Tensor | None = None) -> Problem:
    goal = Goal(torch.zeros(len(images), dtype=torch.long))
    streams = Streams(0, torch.arange(len(images)))
    return Problem(exact_linear(3, (3, 2, 3)), images, goal, streams, allowed=allowed)


def distance(point: Tensor, adv: Tensor) -> Tensor:
    return (point - adv).square().flatten(1).sum(dim=1)


@pytest.mark.parametrize("kappa", [None, 0.8])
@pytest.mark.parametrize("masked", [False, True])
def test_projects_to_the_nearest_image_of_k_pixels(kappa: float | None, masked: bool) -> None:
    images, point = exact_images(4, (3, 2, 3)), 3 * exact_images(4, (3, 2, 3), seed=5) - 1
    allowed = exact_images(4, (3, 2, 3), seed=9) > 0.4 if masked else None
    attack, whole = PGD0(kappa=kappa), problem(images, allowed)
    lines = None if kappa is None else sigma_lines(whole, kappa)
    free = point.clamp(0, 1) if lines is None else lines.nearest(point)
    free = free if allowed is None else torch.where(allowed, free, images)
    k = torch.tensor([1, 2, 3, 6])
    adv = attack._project(whole, point, k, 6, lines)
    assert ((adv != images).any(dim=1).flatten(1).sum(dim=1) <= k).all()
    for row, count in enumerate(k.tolist()):
        least = torch.inf
        for places in combinations(range(6), count):
            pixels = torch.zeros(6, dtype=torch.bool)
            pixels[list(places)] = True
            choice = torch.where(pixels.view(1, 2, 3), free[row], images[row])
            least = min(least, distance(point[row, None], choice[None]).item())
        assert distance(point[row, None], adv[row, None]).item() == pytest.approx(least)


def test_elements_are_projected_one_by_one() -> None:
    images = torch.full((1, 3, 1, 2), 0.5).double()
    delta = torch.tensor([[0.1, -0.6], [0.4, 0.2], [-0.3, 0.0]]).view(1, 3, 1, 2)
    attack = PGD0(unit="elements")
    adv = attack._project(problem(images), images + delta, torch.tensor([2]), 2, None)
    expected = torch.tensor([[0.0, -0.5], [0.4, 0.0], [0.0, 0.0]]).view(1, 3, 1, 2)
    torch.testing.assert_close(adv - images, expected.double())


def test_a_step_is_as_long_as_the_setting_says_on_average() -> None:
    """From the clean image, with room for all pixels, one step of a linear model is known."""
    model, images = exact_linear(2, (3, 4, 5)), exact_images(3, (3, 4, 5))
    labels = torch.ones(3, dtype=torch.long)
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    whole = Problem(model, images, Goal(labels), Streams(0, torch.arange(3)))
    grad = whole.gradient(images, whole.goal.cross_entropy)
    near = images + 1e-9  # what a restart begins at, where there is something
    attack = PGD0(steps=1, step_size=0.02, restarts=1)
    adv, _ = attack._descend(whole, torch.full((3,), 20), near, 0)
    step = -0.02 * grad / grad.abs().mean(dim=(1, 2, 3), keepdim=True)
    torch.testing.assert_close(adv - images, step, rtol=1e-5, atol=1e-7)


def test_never_changes_more_than_k(curved: Classifier, images: Tensor) -> None:
    with torch.no_grad():
        labels = curved(images).argmax(dim=1)
    for k in (1, 4, 1000):
        result = run_attack(PGD0(k=k, steps=5, restarts=2), curved, images, labels)
        assert (result.l0_pixels <= k).all()
    result = run_attack(PGD0(k=4, steps=5, restarts=2, unit="elements"), curved, images, labels)
    assert (result.l0_elements <= 4).all()


def test_an_image_that_is_fooled_is_asked_about_no_more(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(PGD0(k=30), linear, images, labels)
    assert result.success.all()
    assert (result.forwards < 101).all()
    assert torch.equal(result.forwards, result.backwards)


def test_the_last_image_of_a_restart_is_looked_at(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    few = PGD0(k=3, steps=1, restarts=1, step_size=1.0)
    result = run_attack(few, linear, images, labels)
    late = result.success & (result.forwards == 2)
    assert late.any()  # fooled by the only step, after the random start did not


@pytest.mark.parametrize("unit", ["pixels", "elements"])
def test_the_smallest_k_comes_near_the_optimum_of_a_linear_model(unit: str) -> None:
    model = exact_linear(4, (3, 8, 8), seed=4)
    images = sure_images(model, exact_images(16, (3, 8, 8), seed=6))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    spec = {"name": "pgd0", "k": "smallest", "unit": unit, "steps": 30, "restarts": 1}
    attack = build({**spec, "step_size": 1.5})  # long steps let new pixels in
    assert attack.facts().kind == "minimal"
    result = run_attack(attack, model, images, labels)
    needed = result.needed_pixels if unit == "pixels" else result.needed_elements
    fewest = fewest_pixels if unit == "pixels" else fewest_elements
    ratio = needed / fewest(model, images, Goal(labels))
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.25


def test_the_sigma_map_is_kept_to(curved: Classifier, images: Tensor) -> None:
    with torch.no_grad():
        labels = curved(images).argmax(dim=1)
    result = run_attack(PGD0(k=10, kappa=0.8, steps=10, restarts=1), curved, images, labels)
    bound = 0.8 * images * sigma_map(images)
    assert (result.l0_pixels > 0).all()
    assert (result.delta.abs() <= bound + 1e-12).all()
    flat = torch.full_like(images, 0.5)  # nowhere to hide
    with torch.no_grad():
        labels = curved(flat).argmax(dim=1)
    assert torch.equal(run_attack(PGD0(kappa=0.8), curved, flat, labels).adversarial, flat)


def test_eps_bounds_every_value(curved: Classifier, images: Tensor) -> None:
    with torch.no_grad():
        labels = curved(images).argmax(dim=1)
    result = run_attack(PGD0(k=10, eps=0.1, steps=10, restarts=1), curved, images, labels)
    assert (result.linf <= 0.1 + 1e-12).all()
    assert (result.l0_pixels > 0).all()


@pytest.mark.parametrize("beside", [{"unit": "elements"}, {"eps": 0.1}])
def test_the_sigma_map_needs_whole_pixels_and_the_whole_box(beside: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="pgd0 moves whole pixels by the σ-map alone"):
        PGD0(kappa=0.8, **beside)


def test_k_is_a_number_or_the_word_smallest() -> None:
    assert build({"name": "pgd0", "k": "7"}) == PGD0(k=7)
    assert build({"name": "pgd0", "k": "smallest"}) == PGD0(k="smallest")
    with pytest.raises(BadInput, match="k of pgd0 must be"):
        build({"name": "pgd0", "k": "fewest"})
