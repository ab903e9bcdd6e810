"""L-BFGS: on a linear model the smallest change is known, and the search must come close."""

import pytest
import torch
from torch import Tensor, nn

from pinprick import Classifier, run_attack
from pinprick.attacks import LBFGS, DeepFool
from pinprick.oracle import exact_images, exact_linear

SHAPE = (3, 6, 5)


def weights(model: Classifier) -> Tensor:
    assert isinstance(model.net, nn.Module)
    return next(model.net.parameters()).detach()


def nearest_boundary(model: Classifier, images: Tensor, labels: Tensor) -> Tensor:
    """l2 distance to the nearest half-space in which another class wins."""
    weight = weights(model)
    logits = images.flatten(1) @ weight.T
    gaps = logits.gather(1, labels.unsqueeze(1)) - logits
    slopes: Tensor = (weight - weight[labels].unsqueeze(1)).norm(dim=2)
    return (gaps / slopes).scatter(1, labels.unsqueeze(1), torch.inf).amin(dim=1)


@pytest.mark.parametrize("sureness", [1, 8])
@pytest.mark.parametrize("targeted", [False, True])
def test_comes_within_three_percent_of_the_smallest_change_on_two_classes(
    sureness: int, targeted: bool
) -> None:
    model, images = exact_linear(2, SHAPE), exact_images(8, SHAPE)
    weights(model).mul_(sureness)
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(LBFGS(), model, images, labels, targets=1 - labels if targeted else None)
    distance = nearest_boundary(model, images, labels)
    assert result.success.all()
    assert (result.l2 >= distance).all()
    assert (result.l2 <= 1.03 * distance).all()


@pytest.mark.parametrize("classes", [4, 10])
def test_comes_within_three_percent_untargeted_on_more_classes(classes: int) -> None:
    model, images = exact_linear(classes, SHAPE), exact_images(8, SHAPE)
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(LBFGS(), model, images, labels)
    distance = nearest_boundary(model, images, labels)
    assert (result.l2 >= distance).all()
    assert (result.l2 <= 1.03 * distance).all()


def test_comes_within_a_third_of_the_smallest_change_to_a_target() -> None:
    """With many classes the cross-entropy presses all of them down, needed or not."""
    optimize = pytest.importorskip("scipy.optimize")
    model, images = exact_linear(10, SHAPE), exact_images(4, SHAPE)
    with torch.no_grad():
        logits = model(images)
    labels, targets = logits.argmax(dim=1), logits.argmin(dim=1)
    result = run_attack(LBFGS(), model, images, labels, targets=targets)
    assert result.success.all()
    for row, target in enumerate(targets.tolist()):
        weight, image = weights(model), images[row].flatten()
        lead = (weight[target] - weight)[torch.arange(10) != target]
        box = [(-value, 1 - value) for value in image.tolist()]
        behind = (lead @ image).numpy(), lead.numpy()
        beat = {"type": "ineq", "fun": lambda delta, at=behind: at[0] + at[1] @ delta}
        best = optimize.minimize(
            lambda delta: delta @ delta,
            image.numpy() * 0,
            jac=lambda delta: 2 * delta,
            bounds=box,
            constraints=[beat],
            method="SLSQP",
        )
        assert best.success
        assert best.fun**0.5 * 0.999 <= result.l2[row] <= best.fun**0.5 * 4 / 3


def test_beats_deepfool_where_the_network_is_curved(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    lbfgs, deepfool = (
        run_attack(attack, curved, images, curved_labels) for attack in (LBFGS(), DeepFool())
    )
    assert lbfgs.success.all()
    assert (lbfgs.l2 <= deepfool.l2).all()


def test_the_box_and_the_mask_hold(linear: Classifier, images: Tensor) -> None:
    edge = (images > 0.5).double()
    with torch.no_grad():
        labels = linear(edge).argmax(dim=1)
    allowed = torch.zeros(6, 5, dtype=torch.bool)
    allowed[1:] = True
    result = run_attack(LBFGS(), linear, edge, labels, allowed=allowed)
    assert result.success.all()
    assert not ((result.delta != 0) & ~allowed).any()
    assert result.adversarial.min() == 0
    assert result.adversarial.max() == 1


def test_one_search_gives_what_was_met_on_the_way(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    """A penalty far too high leaves the minimum at the clean image, one too low far away."""
    stiff = run_attack(LBFGS(penalty=1e6, searches=1), linear, images, labels)
    assert not stiff.success.any()
    assert torch.equal(stiff.adversarial, images)
    loose = run_attack(LBFGS(penalty=1e-4, searches=1), linear, images, labels)
    found = run_attack(LBFGS(penalty=1e-4), linear, images, labels)
    assert loose.success.all()
    assert (found.l2 < 0.5 * loose.l2).all()
