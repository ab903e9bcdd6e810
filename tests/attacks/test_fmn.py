"""FMN by hand, against the optimum of linear models, and in every norm."""

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from pinprick import BadInput, Classifier, Goal, run_attack
from pinprick.attacks import FMN
from pinprick.oracle import (
    exact_images,
    exact_linear,
    fewest_elements,
    fewest_pixels,
    nearest_l2,
    sure_images,
)

Norm = Literal["l0", "l1", "l2", "linf"]


def weighted(*weights: float, bias: float) -> Classifier:
    """Class 1 wins once the weighted sum of a row of grey values is above ``bias``."""
    layer = nn.Linear(len(weights), 2).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.0] * len(weights), weights]))
        layer.bias.copy_(torch.tensor([bias, 0.0]))
    return Classifier(nn.Sequential(nn.Flatten(), layer))


def test_two_steps_worked_out_by_hand() -> None:
    """The radius goes from 1 to 2, so the two largest weights move by a step of length one."""
    model, image = weighted(3, 4, 0, 1, bias=2), torch.zeros(1, 1, 1, 4).double()
    result = run_attack(FMN(steps=2), model, image, [0])
    assert result.needed_elements.tolist() == [2]
    length = 26**0.5
    expected = torch.tensor([[[[3 / length, 4 / length, 0, 0]]]]).double()
    torch.testing.assert_close(result.adversarial, expected)


def test_one_step_only_looks_at_the_clean_image() -> None:
    image = torch.zeros(1, 1, 1, 2).double()
    result = run_attack(FMN(steps=1), weighted(1, 1, bias=0.5), image, [0])
    assert not result.success.any()
    assert result.forwards.tolist() == result.backwards.tolist() == [1]


def test_finds_the_one_element_that_does_it() -> None:
    model, image = weighted(0.1, 0.3, 2, 0.2, bias=1), torch.full((1, 1, 1, 4), 0.25).double()
    result = run_attack(FMN(steps=30), model, image, [0])
    assert result.l0_elements.tolist() == [1]
    assert (result.adversarial != image).flatten().tolist() == [False, False, True, False]


@pytest.mark.parametrize("classes", [2, 10])
def test_comes_near_the_fewest_elements_of_a_linear_model(classes: int) -> None:
    model = exact_linear(classes, (3, 8, 8), seed=1)
    images = sure_images(model, exact_images(64, (3, 8, 8)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(FMN(steps=100), model, images, labels)
    ratio = result.needed_elements / fewest_elements(model, images, Goal(labels))
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.1


@pytest.mark.parametrize("classes", [2, 10])
def test_pixels_come_near_the_fewest_of_a_linear_model(classes: int) -> None:
    """Counting elements needs 1.8 times as many pixels here."""
    model = exact_linear(classes, (3, 8, 8), seed=1)
    images = sure_images(model, exact_images(32, (3, 8, 8)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(FMN(steps=100, unit="pixels"), model, images, labels)
    ratio = result.needed_pixels / fewest_pixels(model, images, Goal(labels))
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.15


def test_the_pixel_of_the_largest_norm_is_kept_not_that_of_the_largest_element() -> None:
    """Three weights of 2 in the second pixel outweigh one of 3 in the first."""
    weights = torch.tensor([[3.0, 2.0], [0.0, 2.0], [0.0, 2.0]]).double()
    layer = nn.Linear(6, 2).double()
    with torch.no_grad():
        layer.weight.copy_(torch.stack((torch.zeros(6), weights.flatten())))
        layer.bias.copy_(torch.tensor([1.5, 0.0]))
    model = Classifier(nn.Sequential(nn.Flatten(), layer))
    image = torch.zeros(1, 3, 1, 2).double()
    changed = {
        unit: run_attack(FMN(steps=30, unit=unit), model, image, [0]).delta.ne(0).any(dim=1)
        for unit in ("elements", "pixels")
    }
    assert changed["elements"].flatten().tolist() == [True, False]
    assert changed["pixels"].flatten().tolist() == [False, True]


def test_grey_images_have_one_answer_in_both_units(images: Tensor) -> None:
    model, grey = exact_linear(4, (1, 6, 5)), images[:, :1]
    with torch.no_grad():
        labels = model(grey).argmax(dim=1)
    elements, pixels = (
        run_attack(FMN(steps=40, unit=unit), model, grey, labels) for unit in ("elements", "pixels")
    )
    assert torch.equal(elements.adversarial, pixels.adversarial)


def distances(model: Classifier, images: Tensor, goal: Goal, norm: Norm) -> Tensor:
    """To the nearest boundary of a linear model, by the dual norm, as if there were no box."""
    if norm == "l2":
        return nearest_l2(model, images, goal)
    weight: Tensor = model.net[1].weight.detach()  # type: ignore[index]
    steer = weight - weight[goal.labels].unsqueeze(1)
    with torch.no_grad():
        logits = model(images)
    gap = logits.gather(1, goal.labels.unsqueeze(1)) - logits
    dual = steer.norm(p=1 if norm == "linf" else torch.inf, dim=2)
    gap = gap.scatter(1, goal.labels.unsqueeze(1), torch.inf)
    nearest: Tensor = (gap / dual).amin(dim=1)
    return nearest


@pytest.mark.parametrize(("norm", "most"), [("l1", 1.1), ("l2", 1.01), ("linf", 1.02)])
def test_comes_near_the_boundary_in_the_other_norms(norm: Norm, most: float) -> None:
    model, images = exact_linear(4, (3, 8, 8), seed=4), exact_images(16, (3, 8, 8), seed=6)
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = FMN(norm=norm, steps=200, step_size=0.3)
    result = run_attack(attack, model, images, labels)
    ratio = getattr(result, norm) / distances(model, images, Goal(labels), norm)
    assert result.success.all()
    assert (ratio >= 1 - 1e-9).all() or norm == "l1"  # where the box bends the way, never below
    assert ratio.mean() <= most


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_each_norm_is_smallest_in_its_own_attack(
    curved: Classifier, images: Tensor, curved_labels: Tensor, norm: Norm
) -> None:
    runs = {
        own: run_attack(FMN(norm=own, steps=60, step_size=0.5), curved, images, curved_labels)
        for own in ("l0", "l1", "l2", "linf")
    }
    measure = {"l0": "l0_elements"}.get(norm, norm)
    both = torch.stack([run.success for run in runs.values()]).all(dim=0)
    assert both.any()
    size = {own: getattr(run, measure)[both].double().mean() for own, run in runs.items()}
    assert size[norm] == min(size.values())


def test_the_card_names_the_norm() -> None:
    assert (FMN().facts().norm, FMN().facts().unit) == ("l0", "elements")
    assert (FMN(norm="linf").facts().norm, FMN(norm="linf").facts().unit) == ("linf", None)
    assert FMN(unit="pixels").facts().unit == "pixels"
    with pytest.raises(BadInput, match="unit=pixels of fmn is for norm=l0, got norm=l2"):
        FMN(norm="l2", unit="pixels")


def test_images_that_lie_otherwise_in_memory_give_the_same(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    turned = images.transpose(2, 3).contiguous().transpose(2, 3)
    assert not turned.is_contiguous()
    plain, other = (run_attack(FMN(steps=30), linear, x, labels) for x in (images, turned))
    assert torch.equal(plain.adversarial, other.adversarial)
