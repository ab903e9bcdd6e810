"""Grad-CAM against its closed form, alone and in batches, and what it leaves behind."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from explain.nets import Bent, OwnModules, bent, drawn, own_modules, pictures, pooled, seeded
from pinprick import BadInput, Classifier, UnknownName
from pinprick.explain.maps.class_maps import class_maps, gradcam, layercam
from pinprick.explain.maps.guided import guided_gradcam, guided_gradients
from pinprick.explain.maps.maps import Attribution, Maps

CLASSES = [0, 1, 2, 3, 1]


@pytest.mark.parametrize("layer", ["features", "features.2", None])
def test_is_the_class_activation_map_where_a_mean_and_a_linear_layer_follow(
    layer: str | None,
) -> None:
    model, images = pooled(), pictures()
    maps = gradcam(model, images, CLASSES, layer=layer)
    with torch.no_grad():
        features = model.net.features(images)  # type: ignore[attr-defined]
        weights = model.net.head.weight[CLASSES]  # type: ignore[attr-defined]
        cam = torch.einsum("bk,bkij->bij", weights, features).relu() / 36
    torch.testing.assert_close(maps.coarse, cam)
    enlarged = F.interpolate(cam[:, None], size=(12, 12), mode="bilinear", align_corners=False)
    torch.testing.assert_close(maps.values, enlarged[:, 0])
    assert maps.classes.tolist() == CLASSES
    assert maps.layer == (layer or "features")


def test_weighs_planes_by_mean_gradients_where_anything_follows() -> None:
    model, images = bent(nn.ReLU()), pictures(2)
    with torch.no_grad():
        planes = F.relu(model.net.first(images))  # type: ignore[attr-defined]
    planes.requires_grad_()
    second, hidden, head = (getattr(model.net, name) for name in ("second", "hidden", "head"))
    out = F.max_pool2d(F.relu(second(planes) + planes), 2).flatten(1)
    score = head(F.relu(hidden(out)))[torch.arange(2), [3, 0]].sum()
    (slopes,) = torch.autograd.grad(score, planes)
    by_hand = (slopes.mean(dim=(2, 3), keepdim=True) * planes).sum(dim=1).relu()
    maps = gradcam(two_bends(), images, [3, 0], layer="one")
    torch.testing.assert_close(maps.coarse, by_hand.detach())
    finer = layercam(two_bends(), images, [3, 0], layer="one")
    by_hand = (slopes.relu() * planes).sum(dim=1).relu()
    torch.testing.assert_close(finer.coarse, by_hand.detach())
    assert not torch.allclose(finer.coarse, maps.coarse)


def two_bends() -> Classifier:
    """The network of ``bent`` with modules that can be named."""
    model = own_modules()
    model.net.load_state_dict(bent(nn.ReLU()).net.state_dict())  # type: ignore[attr-defined]
    return model


def test_the_class_is_what_the_model_says_where_none_is_given() -> None:
    model, images = pooled(), pictures()
    with torch.no_grad():
        said = model(images).argmax(dim=1)
    maps = gradcam(model, images)
    assert torch.equal(maps.classes, said)
    assert torch.equal(maps.values, gradcam(model, images, said).values)


@pytest.mark.parametrize("method", [gradcam, layercam, guided_gradients, guided_gradcam])
def test_a_batch_gives_what_the_images_give_one_by_one(
    method: Callable[..., Maps | Attribution],
) -> None:
    model, images = own_modules(), pictures()
    together = method(model, images, CLASSES)
    alone = [method(model, images[i : i + 1], CLASSES[i : i + 1]).values for i in range(5)]
    torch.testing.assert_close(together.values, torch.cat(alone))
    in_twos = method(model, images, CLASSES, batch_size=2)
    torch.testing.assert_close(in_twos.values, together.values)
    assert in_twos.classes.tolist() == CLASSES
    assert not together.empty.all()


class Breaks(nn.Module):
    """Passes on what it gets until it is told to break."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False

    def forward(self, x: Tensor) -> Tensor:
        if self.broken:
            raise KeyboardInterrupt
        return x


def hooks_of(net: nn.Module) -> Iterator[int]:
    for module in net.modules():
        yield len(module._forward_hooks) + len(module._backward_hooks)
        yield len(module._forward_pre_hooks) + len(module._backward_pre_hooks)


@pytest.mark.parametrize("method", [gradcam, layercam, guided_gradients, guided_gradcam])
@pytest.mark.parametrize("layer", ["0", None])
def test_nothing_is_left_behind_even_after_an_exception(
    method: Callable[..., Maps | Attribution], layer: str | None
) -> None:
    last = Breaks()
    conv = nn.Conv2d(3, 4, 3, padding=1)
    net = nn.Sequential(conv, nn.ReLU(), nn.Dropout(), nn.Flatten(), nn.Linear(576, 3), last)
    net.double().train()
    settings = {} if method is guided_gradients else {"layer": layer}
    images = pictures(2)
    method(net, images, [0, 1], **settings)
    last.broken = True
    with pytest.raises(KeyboardInterrupt):
        method(net, images, [0, 1], **settings)
    assert sum(hooks_of(net)) == 0
    assert all(module.training for module in net.modules())
    assert all(param.requires_grad and param.grad is None for param in net.parameters())
    assert torch.equal(images, pictures(2))
    assert not images.requires_grad


def test_a_layer_that_works_in_place_after_it_spoils_nothing() -> None:
    def build(inplace: bool) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=inplace),
            nn.Flatten(),
            nn.Linear(576, 3),
        )

    images = pictures(3)
    for layer in ("0", "1", "2"):
        apart, inside = (
            gradcam(seeded(lambda i=inplace: build(i)), images, [0, 1, 2], layer=layer)  # type: ignore[misc]
            for inplace in (False, True)
        )
        assert torch.equal(apart.values, inside.values)
        assert not apart.empty.all()


class Twice(Bent):
    """One module in two places, and a function in the third."""

    def forward(self, images: Tensor) -> Tensor:
        out = self.bend(self.first(images))
        out = F.max_pool2d(self.bend(self.second(out) + out), 2).flatten(1)
        logits: Tensor = self.head(F.relu(self.hidden(out)))
        return logits


def test_the_last_call_counts_where_a_layer_is_called_several_times() -> None:
    twice, apart, images = seeded(lambda: Twice(nn.ReLU())), seeded(OwnModules), pictures(2)
    apart.load_state_dict(twice.state_dict())
    expected = gradcam(apart, images, [0, 1], layer="two")
    assert torch.equal(gradcam(twice, images, [0, 1], layer="bend").values, expected.values)
    assert not expected.empty.all()


def test_works_in_inference_mode_and_without_gradients() -> None:
    model, images = own_modules(), pictures()
    usual = guided_gradcam(model, images, CLASSES).values
    with torch.no_grad():
        assert torch.equal(guided_gradcam(model, images, CLASSES).values, usual)
    with torch.inference_mode():
        assert torch.equal(guided_gradcam(model, pictures(), CLASSES).values, usual)


def test_an_empty_map_is_flagged_and_stays_zero() -> None:
    model, images = pooled(), drawn(2, 3, 12, 12)
    with torch.no_grad():
        model.net.head.weight[0] = 0  # type: ignore[attr-defined]
    maps = gradcam(model, images, [0, 1])
    assert maps.empty.tolist() == [True, False]
    for normalised in (maps.values, maps.scaled, maps.shares):
        assert (normalised[0] == 0).all()
    assert maps.top().flatten(1).sum(dim=1).tolist() == [0, 29]  # a fifth of 144, rounded up


def test_what_is_not_finite_is_an_empty_map() -> None:
    class Overflows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3).double()

        def forward(self, images: Tensor) -> Tensor:
            logits: Tensor = self.conv(images).mean(dim=(2, 3)) * float("nan")
            return logits

    maps = gradcam(Overflows(), pictures(2), [0, 0])
    assert maps.empty.all()
    assert maps.values.isfinite().all()


def refused(expected: str, *args: object, **settings: object) -> None:
    with pytest.raises((BadInput, UnknownName), match=expected):
        gradcam(*args, **settings)  # type: ignore[arg-type]


def test_says_what_is_wrong_with_what_it_was_given() -> None:
    model, images = pooled(), pictures()
    refused("classes must lie in 0 to 3", model, images, [0, 1, 2, 3, 4])
    refused("one entry for each of the 5 images", model, images, [0])
    refused(r"images must lie in \[0, 1\]", model, images * 255, CLASSES)
    refused("needs at least one image", model, images[:0], [])
    refused("no layer is called 'feature'; did you mean features", model, images, layer="feature")
    refused("gives the shape .5, 4., which is no map", model, images, layer="head")
    refused("a ReLU that is not in it", model, images, layer=nn.ReLU())
    function = Classifier(lambda x: x.mean(dim=(2, 3)), name="mine")
    refused("needs the layers of a network, but mine gives gradients alone", function, images)
    refused("but Pooled gives scores alone", Classifier(model.net, access="scores"), images)
    refused("batch_size must be a whole number", model, images, batch_size=0)


def test_images_are_checked_before_their_size_chooses_the_method() -> None:
    with pytest.raises(BadInput, match=r"images must have the shape \(batch, channel, height"):
        class_maps(pooled(), torch.zeros(3))  # which has no height and width to look at


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace:FutureWarning")
@pytest.mark.parametrize("method", [gradcam, layercam, guided_gradients, guided_gradcam])
def test_a_network_that_hides_its_layers_is_refused(
    method: Callable[..., Maps | Attribution],
) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(400, 3)).double()
    hidden = nn.Sequential(torch.jit.trace(net, pictures(1)))
    with pytest.raises(BadInput, match="is scripted or traced, which hides them; pass"):
        method(hidden, pictures(1))
    assert not method(net, pictures(1)).empty.all()


def test_a_layer_that_is_not_called_or_does_not_matter_is_refused() -> None:
    class Idle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.unused, self.vain = (nn.Conv2d(3, 4, 3).double() for _ in range(3))

        def forward(self, images: Tensor) -> Tensor:
            self.vain(images)
            logits: Tensor = self.conv(images).mean(dim=(2, 3))
            return logits

    refused("'unused' was not called", Idle(), pictures(2), layer="unused")
    refused("do not depend on the layer 'vain'", Idle(), pictures(2), layer="vain")
    assert gradcam(Idle(), pictures(2)).layer == "conv"
