"""Where captum is right, the maps are the same; where it is not, one sees why we have our own."""

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from explain.nets import bent, own_modules, pictures, pooled
from pinprick import Classifier
from pinprick.explain.maps.class_maps import gradcam
from pinprick.explain.maps.guided import guided_gradcam, guided_gradients
from pinprick.explain.maps.integrated import integrated_gradients

captum = pytest.importorskip("captum.attr")

CLASSES = [0, 2, 3, 1, 1]


def theirs(
    method: str, model: Classifier, images: Tensor, *layer: nn.Module, **more: str
) -> Tensor:
    assert isinstance(model.net, nn.Module)
    with warnings.catch_warnings(), model.frozen():
        warnings.simplefilter("ignore")  # that it sets hooks, and asks the images for gradients
        maker = getattr(captum, method)(model.net, *layer)
        given = images.clone().requires_grad_()
        values: Tensor = maker.attribute(given, target=CLASSES, **more)
    return values.detach()


@pytest.mark.parametrize("layer", ["first", "one", "second", "two"])
def test_gradcam_is_the_same(layer: str) -> None:
    model, images = own_modules(), pictures()
    maps = gradcam(model, images, CLASSES, layer=layer)
    expected = theirs("LayerGradCam", model, images, getattr(model.net, layer))
    torch.testing.assert_close(maps.coarse, expected[:, 0].relu())
    assert not maps.empty.all()


RIGHT: dict[str, Callable[[Tensor], Tensor]] = {
    "shared module": nn.ReLU(),
    "shared module in place": nn.ReLU(inplace=True),
}
WRONG: dict[str, Callable[[Tensor], Tensor]] = {"function": F.relu, "ReLU6": nn.ReLU6()}


def test_guided_gradients_are_the_same_with_modules_of_their_own() -> None:
    model, images = own_modules(), pictures()
    ours = guided_gradients(model, images, CLASSES).values
    torch.testing.assert_close(ours, theirs("GuidedBackprop", model, images))
    assert ours.any()


@pytest.mark.parametrize("make", RIGHT)
def test_guided_gradients_are_the_same_with_a_shared_module(make: str) -> None:
    model, images = bent(RIGHT[make]), pictures()
    ours = guided_gradients(model, images, CLASSES).values
    torch.testing.assert_close(ours, theirs("GuidedBackprop", model, images))


@pytest.mark.parametrize("make", WRONG)
def test_what_captum_cannot_guide_it_gives_the_plain_gradient_of(make: str) -> None:
    model, images = bent(WRONG[make]), pictures()
    given = images.clone().requires_grad_()
    (plain,) = torch.autograd.grad(model(given)[range(5), CLASSES].sum(), given)
    torch.testing.assert_close(theirs("GuidedBackprop", model, images), plain)
    assert not torch.allclose(guided_gradients(model, images, CLASSES).values, plain)


def test_guided_gradcam_is_the_same_enlarged_alike() -> None:
    model, images = own_modules(), pictures()
    assert isinstance(model.net, nn.Module)
    layer = model.net.get_submodule("two")
    expected = theirs("GuidedGradCam", model, images, layer, interpolate_mode="bilinear")
    torch.testing.assert_close(guided_gradcam(model, images, CLASSES, layer=layer).values, expected)


def test_integrated_gradients_are_the_same() -> None:
    model, images, adv = pooled(), pictures(), pictures(seed=2)
    ours = integrated_gradients(model, images, adv, CLASSES, gauge="raw", steps=40, max_steps=40)
    with model.frozen():
        expected = captum.IntegratedGradients(model.net).attribute(
            adv, baselines=images, target=CLASSES, n_steps=40, method="riemann_middle"
        )
    torch.testing.assert_close(ours.values, expected.detach())
