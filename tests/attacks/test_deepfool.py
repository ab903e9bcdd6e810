"""DeepFool: on a linear model the nearest boundary is known, and one step reaches it."""

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from pinprick import BadInput, Classifier, run_attack
from pinprick.attacks import DeepFool
from pinprick.oracle import exact_images, exact_linear

SHAPE = (3, 6, 5)
Norm = Literal["l2", "linf"]


def weights(model: Classifier) -> Tensor:
    assert isinstance(model.net, nn.Module)
    *_, bias = model.net.parameters()
    assert not bias.any()
    return next(model.net.parameters()).detach()


def nearest_boundary(model: Classifier, images: Tensor, labels: Tensor, norm: Norm) -> Tensor:
    """Distance to the nearest of the half-spaces in which another class wins."""
    weight = weights(model)
    logits = images.flatten(1) @ weight.T
    gaps = logits.gather(1, labels.unsqueeze(1)) - logits
    slopes: Tensor = (weight - weight[labels].unsqueeze(1)).norm(p=2 if norm == "l2" else 1, dim=2)
    return (gaps / slopes).scatter(1, labels.unsqueeze(1), torch.inf).amin(dim=1)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("classes", [2, 4, 10])
def test_reaches_the_nearest_boundary_of_a_linear_model_in_one_step(
    norm: Norm, classes: int
) -> None:
    model, images = exact_linear(classes, SHAPE), exact_images(8, SHAPE)
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    distance = nearest_boundary(model, images, labels, norm)
    result = run_attack(DeepFool(norm=norm), model, images, labels)
    assert result.success.all()
    assert torch.allclose(getattr(result, norm), 1.02 * (distance + 1e-4), rtol=1e-9)
    assert result.forwards.tolist() == [2] * 8
    assert result.backwards.tolist() == [classes - 1] * 8


def test_looks_at_the_classes_that_were_ranked_highest() -> None:
    model, images = exact_linear(10, SHAPE), exact_images(8, SHAPE)
    with torch.no_grad():
        logits = model(images)
    labels, rivals = logits.topk(2, dim=1).indices.unbind(dim=1)
    result = run_attack(DeepFool(candidates=2), model, images, labels)
    assert torch.equal(result.adversarial_logits.argmax(dim=1), rivals)
    assert result.backwards.tolist() == [1] * 8


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_curved_network_takes_steps_that_each_image_ends_for_itself(
    curved: Classifier, images: Tensor, curved_labels: Tensor, norm: Norm
) -> None:
    result = run_attack(DeepFool(norm=norm), curved, images, curved_labels)
    assert result.success.all()
    assert len(result.forwards.unique()) > 1
    assert torch.equal(result.backwards * 2, result.forwards * 3)  # three rivals a step
    for row in range(len(images)):
        only = slice(row, row + 1)
        alone = run_attack(DeepFool(norm=norm), curved, images[only], curved_labels[only])
        assert torch.allclose(alone.adversarial, result.adversarial[only], atol=1e-12)
        assert alone.forwards == result.forwards[only]


def test_goes_around_what_it_may_not_change(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    allowed = torch.zeros(6, 5, dtype=torch.bool)
    allowed[1:5] = True
    result = run_attack(DeepFool(), linear, images, labels, allowed=allowed)
    weight = weights(linear).view(4, *SHAPE) * allowed  # the boundary as the mask lets it be seen
    gaps = result.clean_logits.gather(1, labels.unsqueeze(1)) - result.clean_logits
    slopes = (weight - weight[labels].unsqueeze(1)).flatten(2).norm(dim=2)
    distance = (gaps / slopes).scatter(1, labels.unsqueeze(1), torch.inf).amin(dim=1)
    assert result.success.all()
    assert torch.allclose(result.l2, 1.02 * (distance + 1e-4), rtol=1e-9)


def test_values_at_the_edge_of_the_box_are_left_out(linear: Classifier, images: Tensor) -> None:
    edge = (images > 0.5).double()  # nothing can move but inwards
    with torch.no_grad():
        labels = linear(edge).argmax(dim=1)
    result = run_attack(DeepFool(), linear, edge, labels)
    assert result.success.all()
    assert (result.forwards <= 6).all()  # blind steps that are cut off would take dozens


def test_an_image_that_cannot_be_moved_is_given_back() -> None:
    """Both classes at the box's end: no step inside it brings class 1 nearer."""
    layer = nn.Linear(4, 2).double()
    layer.weight.data = torch.tensor([[0.0] * 4, [1.0] * 4], dtype=torch.float64)
    layer.bias.data = torch.tensor([5.0, 0.0], dtype=torch.float64)
    images = torch.stack((torch.ones(1, 2, 2), torch.full((1, 2, 2), 0.5))).double()
    net = nn.Sequential(nn.Flatten(), layer)
    result = run_attack(DeepFool(), net, images, [0, 0])
    assert not result.success.any()
    assert torch.equal(result.adversarial, images)
    assert result.forwards.tolist() == [1, 3]  # seen at once; seen after a step to the corner


def test_a_flat_gradient_is_what_the_remark_says(images: Tensor) -> None:
    def flat(images: Tensor) -> Tensor:
        return 0 * images.flatten(1)[:, :3] + torch.tensor([2.0, 1.0, 0.0]).to(images)

    result = run_attack(DeepFool(), flat, images, torch.zeros(6, dtype=torch.long))
    assert set(result.remarks) == {"the model's gradient was zero or not finite"}
    assert torch.equal(result.adversarial, images)


def test_a_model_without_gradients_is_refused_in_one_line(images: Tensor) -> None:
    def scores(images: Tensor) -> Tensor:
        return torch.stack((images.detach().mean(dim=(1, 2, 3)), torch.zeros(len(images))), dim=1)

    with pytest.raises(BadInput, match="passes no gradient back"):
        run_attack(DeepFool(), scores, images, torch.zeros(6, dtype=torch.long))


def test_the_card_names_the_norm_that_is_kept_small() -> None:
    assert DeepFool().facts().norm == "l2"
    assert DeepFool(norm="linf").facts().norm == "linf"
