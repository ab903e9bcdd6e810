"""Guided gradients of whole networks: where they are the plain gradient, and where refused."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from explain.nets import RELUS, bent, own_modules, pictures, seeded
from pinprick import BadInput, Classifier
from pinprick.explain.maps.class_maps import gradcam
from pinprick.explain.maps.guided import GuidedReLUs, guided_gradcam, guided_gradients

CLASSES = [0, 2, 3, 1, 1]


def plain_gradients(model: Classifier, images: Tensor) -> Tensor:
    given = images.clone().requires_grad_()
    score = model(given)[range(len(images)), CLASSES].sum()
    return torch.autograd.grad(score, given)[0]


@pytest.mark.parametrize("make", RELUS)
def test_are_the_same_however_the_relus_are_made(make: str) -> None:
    apart, images = own_modules(), pictures()
    model = bent(RELUS[make])
    assert isinstance(apart.net, nn.Module)
    apart.net.load_state_dict(model.net.state_dict())  # type: ignore[attr-defined]
    expected = guided_gradients(apart, images, CLASSES)
    assert torch.equal(guided_gradients(model, images, CLASSES).values, expected.values)
    assert not torch.allclose(expected.values, plain_gradients(apart, images))


@pytest.mark.parametrize("bend", [nn.ReLU(), F.relu], ids=["module", "function"])
def test_are_the_plain_gradient_where_all_weights_are_positive(
    bend: Callable[[Tensor], Tensor],
) -> None:
    model = bent(bend)
    assert isinstance(model.net, nn.Module)
    with torch.no_grad():
        for param in model.net.parameters():
            param.abs_()
    images = pictures()
    guided = guided_gradients(model, images, CLASSES).values
    torch.testing.assert_close(guided, plain_gradients(model, images))
    assert (guided > 0).all()


def test_the_guided_pass_of_a_network_without_relus_is_the_plain_one() -> None:
    model, images = bent(torch.square), pictures()
    with GuidedReLUs() as relus:
        guided = plain_gradients(model, images)
    assert torch.equal(guided, plain_gradients(model, images))
    assert relus.count == 0


def test_a_network_without_relus_is_refused() -> None:
    with pytest.raises(BadInput, match="bent called no ReLU, but guided gradients need one"):
        guided_gradients(bent(torch.square), pictures(), CLASSES)


@pytest.mark.parametrize(
    ("name", "bend"),
    [
        ("GELU", F.gelu),
        ("SiLU", nn.SiLU()),
        ("GELU", lambda x: F.gelu(F.relu(x))),
        ("Tanh", lambda x: torch.tanh(F.relu(x))),
        ("Softsign", lambda x: F.softsign(F.relu(x))),
    ],
    ids=["GELU", "SiLU", "GELU beside ReLU", "Tanh beside ReLU", "Softsign beside ReLU"],
)
def test_activations_without_a_guided_form_are_refused(
    name: str, bend: Callable[[Tensor], Tensor]
) -> None:
    with pytest.raises(BadInput, match=f"bent uses {name}, but guided gradients are defined for"):
        guided_gradients(bent(bend), pictures(), CLASSES)


def test_the_product_is_taken_with_the_map_of_the_same_class() -> None:
    model, images = own_modules(), pictures()
    guided = guided_gradients(model, images)
    maps = gradcam(model, images, guided.classes, layer="one")
    product = guided_gradcam(model, images, layer="one")
    assert torch.equal(product.values, guided.values * maps.values.unsqueeze(1))
    assert torch.equal(product.classes, guided.classes)


def test_are_of_images_before_normalisation() -> None:
    net, images = seeded(lambda: own_modules().net), pictures()  # type: ignore[arg-type, return-value]
    mean, std = (0.4, 0.5, 0.6), (0.5, 0.25, 0.125)
    model = Classifier(net, mean=mean, std=std)
    inside = guided_gradients(model, images, CLASSES).values
    given = model.normalise(images).requires_grad_()
    with GuidedReLUs():
        score = net(given)[range(5), CLASSES].sum()
    (grad,) = torch.autograd.grad(score, given)
    torch.testing.assert_close(inside, grad / torch.tensor(std).view(3, 1, 1).double())


def test_an_image_without_any_gradient_is_flagged() -> None:
    model = own_modules()
    with torch.no_grad():
        model.net.head.weight[2] = 0  # type: ignore[attr-defined]
    guided = guided_gradients(model, pictures(), [2, 3, 2, 3, 3])
    assert guided.empty[[0, 2]].all()
    assert not guided.empty.all()
    assert torch.equal(guided.per_pixel, guided.values.sum(dim=1))
