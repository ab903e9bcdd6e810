"""Which layer is found, in networks of every build, and that its map is the one meant."""

import pytest
import torch
from torch import Tensor, nn
from torchvision.models import resnet18, vgg11_bn

from explain.nets import drawn, pictures, seeded
from pinprick import BadInput
from pinprick.explain.maps.class_maps import gradcam, layercam
from pinprick.explain.maps.layers import find_layer
from pinprick.zoo.nets import NETS, build_net


@pytest.mark.slow
def test_a_resnet_is_looked_at_after_its_last_block() -> None:
    net, images = seeded(lambda: resnet18(num_classes=4)).float(), drawn(2, 3, 224, 224).float()
    assert find_layer(net, images) == "layer4"
    maps = gradcam(net, images, [0, 1])
    assert maps.coarse.shape == (2, 7, 7)
    last_block = net.get_submodule("layer4")[-1]  # type: ignore[index]
    assert torch.equal(maps.values, gradcam(net, images, [0, 1], layer=last_block).values)


@pytest.mark.slow
def test_a_vgg_is_looked_at_after_its_last_pooling() -> None:
    with torch.device("meta"):
        net = vgg11_bn(num_classes=4)
    net.classifier = nn.Linear(512 * 49, 4)
    net.features = seeded(lambda: vgg11_features())
    net, images = net.float(), drawn(2, 3, 224, 224).float()
    assert find_layer(net, images) == "features"  # not avgpool, which comes after it
    maps = gradcam(net, images, [0, 1])
    assert maps.coarse.shape == (2, 7, 7)
    pooling = net.features[-1]
    assert isinstance(pooling, nn.MaxPool2d)
    assert torch.equal(maps.values, gradcam(net, images, [0, 1], layer=pooling).values)


def vgg11_features() -> nn.Module:
    with torch.device("meta"):
        net = vgg11_bn(num_classes=4)
    features: nn.Module = net.features.to_empty(device="cpu")
    for module in features.modules():
        if isinstance(module, (nn.Conv2d, nn.BatchNorm2d)):
            module.reset_parameters()
    return features


SMALL = {  # where Grad-CAM looks, where LayerCAM does, and how fine the two maps are
    "resnet18": ("stages.2", 8, "stages.1", 16),
    "resnet50": ("stages.2", 8, "stages.1", 16),
    "resnet20": ("stages", 8, "stages.1", 16),
    "vgg16": ("features.22", 8, "features.12", 16),
    "vgg19": ("features.25", 8, "features.12", 16),
    "mnist_cnn": ("3", 7, "1", 14),
    "mnist_cnn_large": ("5", 7, "4", 14),
}


def test_every_network_of_ours_is_tried() -> None:
    assert set(SMALL) == set(NETS)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.slow
def test_networks_for_small_pictures_are_looked_at_where_maps_are_fine_enough(name: str) -> None:
    layer, side, finer_layer, finer_side = SMALL[name]
    net = seeded(lambda: build_net(name)).float()
    images = drawn(1, NETS[name].channels, *NETS[name].size).float()
    maps, finer = gradcam(net, images), layercam(net, images)
    assert (maps.layer, *maps.coarse.shape[1:]) == (layer, side, side)
    assert (finer.layer, *finer.coarse.shape[1:]) == (finer_layer, finer_side, finer_side)


class Wrapped(nn.Module):
    """A backbone that gives a vector, with blocks that end coarser than they begin."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = Backbone()
        self.head = nn.Linear(4, 3)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.backbone(images))
        return logits


class Backbone(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Shrink(3), Shrink(4), Shrink(4)])

    def forward(self, images: Tensor) -> Tensor:
        for block in self.blocks:
            images = block(images)
        return images.mean(dim=(2, 3))


class Shrink(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.inner = nn.Conv2d(channels, 4, 3, padding=1)
        self.outer = nn.Conv2d(4, 4, 3, stride=2, padding=1)
        self.shortcut = nn.Conv2d(channels, 4, 1, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.outer(self.inner(x).relu()) + self.shortcut(x)
        return out.relu()


def test_a_layer_on_one_branch_of_a_block_is_passed_over() -> None:
    net = seeded(Wrapped)
    assert find_layer(net, pictures(1)) == "backbone.blocks.0"  # 6 by 6; 12 by 12 is inner's
    assert find_layer(net, pictures(1), at_least=3) == "backbone.blocks.1"
    assert find_layer(net, pictures(1), at_least=1) == "backbone.blocks.2"


def test_where_nothing_is_fine_enough_the_finest_is_taken() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=4, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2, padding=1),
        nn.Flatten(),
        nn.Linear(16, 3),
    )
    assert find_layer(net.double(), pictures(1)) == "1"


class Patches(nn.Module):
    """A small vision transformer, which reads its answer off the class token or off the mean."""

    def __init__(self, class_token: bool) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 2, stride=2)
        self.token = nn.Parameter(torch.ones(1, 1, 8)) if class_token else None
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
            for _ in range(2)
        )
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 3)

    def forward(self, images: Tensor) -> Tensor:
        x: Tensor = self.patch(images).flatten(2).transpose(1, 2)
        if self.token is not None:
            x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        logits: Tensor = self.head(x[:, 0] if self.token is not None else x.mean(dim=1))
        return logits


def test_a_transformer_with_a_class_token_is_looked_at_before_its_last_attention() -> None:
    net = seeded(lambda: Patches(class_token=True))
    maps = gradcam(net, pictures(2), [0, 1])
    assert maps.layer == "blocks.1.norm1"
    assert maps.coarse.shape == (2, 6, 6)
    assert not maps.empty.all()
    assert gradcam(net, pictures(2), [0, 1], layer="blocks.1").empty.all()  # too late


def test_a_transformer_that_takes_the_mean_is_looked_at_after_its_last_norm() -> None:
    net = seeded(lambda: Patches(class_token=False))
    maps = gradcam(net, pictures(2), [0, 1])
    assert maps.layer == "norm"
    features: list[Tensor] = []
    handle = net.get_submodule("norm").register_forward_hook(lambda *at: features.append(at[2]))
    net.eval()(pictures(2))
    handle.remove()
    weights = net.get_parameter("head.weight")[[0, 1]]
    cam = torch.einsum("bk,bnk->bn", weights, features[0]).relu().view(2, 6, 6) / 36
    torch.testing.assert_close(maps.coarse, cam.detach())


class Aside(nn.Module):
    """The last layer that runs has no say in the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.main, self.vain = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.main(images).mean(dim=(2, 3))
        self.vain(images)
        return logits


def test_a_layer_without_a_say_is_passed_over() -> None:
    assert find_layer(seeded(Aside), pictures(1)) == "main"


def test_the_probe_leaves_no_hooks_and_changes_nothing() -> None:
    net = seeded(Wrapped).train()
    find_layer(net, pictures(1))
    assert not any(module._forward_hooks for module in net.modules())
    assert all(module.training for module in net.modules())
    assert all(param.requires_grad and param.grad is None for param in net.parameters())


def test_a_network_without_any_map_says_what_to_pass() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(432, 8), nn.ReLU(), nn.Linear(8, 3)).double()
    with pytest.raises(
        BadInput, match=r"no layer of Sequential gives .* pass layer=\.\.\., the name"
    ):
        gradcam(net, pictures(1))


def test_a_layer_is_looked_for_once_for_a_network_and_a_size() -> None:
    passes: list[int] = []
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.LazyLinear(5))
    net(torch.rand(1, 3, 8, 8))
    net.register_forward_hook(lambda *_: passes.append(1))
    first = gradcam(net, torch.rand(2, 3, 8, 8), layer=None)
    once = len(passes)
    second = gradcam(net, torch.rand(2, 3, 8, 8), layer=None)
    assert second.layer == first.layer
    assert (once, len(passes) - once) == (2, 1)
