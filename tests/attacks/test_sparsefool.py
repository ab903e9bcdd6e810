"""SparseFool's solver against the loop it replaces, and its counts where the fewest are known."""

import pytest
import torch
from torch import Tensor, nn

from pinprick import Classifier, Goal, run_attack
from pinprick.attacks import SparseFool
from pinprick.attacks.sparsefool import to_plane
from pinprick.oracle import exact_images, exact_linear, fewest_elements, sure_images


def one_element_a_step(image: Tensor, normal: Tensor, way: Tensor, eps: float) -> Tensor:
    """The published solver: the largest coordinate, as far as needed; then the next one."""
    shape, image, left = image.shape, image.flatten(), normal.flatten() / normal.norm()
    plane, point = left.clone(), image + way.flatten()
    low, high = (image - eps).clamp(min=0), (image + eps).clamp(max=1)
    moved = image.clone()
    before = torch.dot(plane, moved - point)
    while torch.dot(plane, moved - point).sign() == before.sign() and left.any():
        gap = torch.dot(plane, moved - point) + 0.001 * before.sign()
        place = left.abs().argmax()
        step = (gap.abs() / left[place].abs()).clamp(min=1e-4) * left[place].sign()
        moved[place] = (moved[place] + step).clamp(low[place], high[place])
        left[place] = 0
    return moved.view(shape)


@pytest.mark.parametrize("eps", [1.0, 0.2])
@pytest.mark.parametrize("length", [0.001, 0.3, 1.0, 2.5, 40.0])
def test_the_closed_form_is_the_loop(length: float, eps: float) -> None:
    generator = torch.Generator().manual_seed(5)
    images = torch.rand(16, 3, 7, 6, generator=generator, dtype=torch.float64)
    images[:4] = images[:4].round()  # at the edges: half of the elements cannot move
    normal = torch.randn(images.shape, generator=generator, dtype=torch.float64)
    normal[:, 1, 2] = 0  # as where values may not change
    way = normal + 0.5 * torch.randn(images.shape, generator=generator, dtype=torch.float64)
    way = length * way / way.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    low, high = (images - eps).clamp(min=0), (images + eps).clamp(max=1)
    moved = to_plane(images, normal, way, low, high)
    loop = torch.stack(
        [one_element_a_step(*case, eps) for case in zip(images, normal, way, strict=True)]
    )
    assert torch.equal(moved != images, loop != images)
    torch.testing.assert_close(moved, loop, rtol=0, atol=1e-12)
    assert (moved[:, 1, 2] == images[:, 1, 2]).all()


def test_the_solver_ends_just_behind_the_plane_or_at_the_corner() -> None:
    images = exact_images(6, (3, 6, 5))
    normal = exact_images(6, (3, 6, 5), seed=3) - 0.5
    flat = normal.flatten(1)
    size = flat.norm(dim=1)
    for length in (0.1, 1.0, 100.0):
        way = length * normal / size.view(-1, 1, 1, 1)
        moved = to_plane(images, normal, way, torch.zeros_like(images), torch.ones_like(images))
        passed = ((moved - images).flatten(1) * flat).sum(dim=1) / size
        if length < 100:
            assert ((passed >= length) & (passed <= length + 0.001 + 1e-9)).all()
        else:
            assert torch.equal(moved, (normal > 0).double().where(normal != 0, images))


def test_a_plane_behind_the_image_is_headed_for_as_if_it_were_ahead() -> None:
    images, normal = exact_images(2, (1, 4, 4)), exact_images(2, (1, 4, 4), seed=3) - 0.5
    low, high = torch.zeros_like(images), torch.ones_like(images)
    ahead = to_plane(images, normal, 0.3 * normal, low, high)
    assert torch.equal(to_plane(images, normal, -0.3 * normal, low, high), ahead)
    assert torch.equal(to_plane(images, normal, 0 * normal, low, high), images)
    assert torch.equal(to_plane(images, 0 * normal, normal, low, high), images)


@pytest.mark.parametrize("classes", [2, 4, 10])
@pytest.mark.parametrize("eps", [1.0, 0.4])
def test_on_the_boundary_itself_it_comes_near_the_fewest(classes: int, eps: float) -> None:
    model = exact_linear(classes, (3, 8, 8), seed=4)
    images = sure_images(model, exact_images(64, (3, 8, 8), seed=6))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(SparseFool(lam=1.0, eps=eps), model, images, labels)
    fewest = fewest_elements(model, images, Goal(labels), eps=eps)
    reachable = fewest.isfinite()
    ratio = (result.needed_elements / fewest)[reachable]
    assert reachable.sum() > 50
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.15
    assert (result.linf <= eps + 1e-12).all()


def test_a_round_on_a_linear_model_costs_what_the_file_says() -> None:
    model = exact_linear(4, (3, 8, 8), seed=4)
    images = sure_images(model, exact_images(8, (3, 8, 8)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(SparseFool(), model, images, labels)
    assert result.success.all()
    assert result.forwards.tolist() == [4] * 8  # one step of DeepFool, the normal, the candidate
    assert result.backwards.tolist() == [4] * 8  # three rivals, the normal
    limited = run_attack(SparseFool(candidates=2), model, images, labels)
    assert limited.backwards.tolist() == [2] * 8


def test_a_larger_lambda_takes_fewer_passes_and_more_elements(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    near, far = (
        run_attack(SparseFool(lam=lam, steps=50), curved, images, curved_labels)
        for lam in (1.0, 3.0)
    )
    assert far.success.all()
    assert near.success.all()
    assert near.l0_elements.sum() < far.l0_elements.sum()
    assert near.forwards.sum() > far.forwards.sum()


def test_images_at_the_corner_of_the_box_are_no_obstacle(
    linear: Classifier, images: Tensor
) -> None:
    corner = (images > 0.5).double()
    with torch.no_grad():
        labels = linear(corner).argmax(dim=1)
    result = run_attack(SparseFool(lam=1.0), linear, corner, labels)
    assert result.success.all()
    assert (result.l0_elements < 30).all()


def test_where_deepfool_cannot_move_the_image_is_given_back(images: Tensor) -> None:
    layer = nn.Linear(4, 2).double()
    layer.weight.data = torch.tensor([[0.0] * 4, [1.0] * 4], dtype=torch.float64)
    layer.bias.data = torch.tensor([5.0, 0.0], dtype=torch.float64)
    ones = torch.ones(1, 1, 2, 2, dtype=torch.float64)
    result = run_attack(SparseFool(), nn.Sequential(nn.Flatten(), layer), ones, [0])
    assert not result.success.any()
    assert torch.equal(result.adversarial, ones)
    assert result.forwards.item() == 2
