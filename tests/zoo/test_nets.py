"""Our own networks: shapes, sizes, and ReLUs that can be hooked one by one."""

import pytest
import torch
from torch import nn

from pinprick import BadInput, UnknownName
from pinprick.zoo.nets import NETS, build_net

PARAMETERS = {  # worked out by hand from the widths
    "resnet18": 11_173_962,
    "resnet50": 23_520_842,
    "vgg16": 14_724_042,
    "vgg19": 20_035_018,
    "resnet20": 269_722
    + 16 * 32
    + 2 * 32
    + 32 * 64
    + 2 * 64,  # the paper's, and two shortcuts of 1x1
    "mnist_cnn": 166_406,
    "mnist_cnn_large": 3_274_634,
}
RELUS = {
    "resnet18": 17,
    "resnet50": 49,
    "vgg16": 13,
    "vgg19": 16,
    "resnet20": 19,
    "mnist_cnn": 3,
    "mnist_cnn_large": 3,
}


@pytest.mark.parametrize("name", NETS)
def test_the_size_of_a_network_is_that_of_its_paper(name: str) -> None:
    net = build_net(name)
    assert sum(parameter.numel() for parameter in net.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", NETS)
def test_gives_one_logit_for_each_class(name: str) -> None:
    design = NETS[name]
    images = torch.rand(2, design.channels, *design.size)
    with torch.no_grad():
        assert build_net(name, classes=7)(images).shape == (2, 7)


@pytest.mark.parametrize("name", NETS)
def test_every_relu_is_used_once_and_not_in_place(name: str) -> None:
    net = build_net(name).eval()
    calls: dict[nn.Module, int] = {}
    relus = [module for module in net.modules() if isinstance(module, nn.ReLU)]
    for relu in relus:
        assert not relu.inplace
        relu.register_forward_hook(lambda relu, *_: calls.update({relu: calls.get(relu, 0) + 1}))
    with torch.no_grad():
        net(torch.rand(1, NETS[name].channels, *NETS[name].size))
    assert len(relus) == RELUS[name]
    assert [calls[relu] for relu in relus] == [1] * len(relus)


def test_the_same_seed_gives_the_same_weights() -> None:
    weights = []
    for _ in range(2):
        torch.manual_seed(3)
        weights.append(torch.cat([p.flatten() for p in build_net("resnet20").parameters()]))
    assert torch.equal(*weights)


@pytest.mark.parametrize("name", ["resnet18", "resnet20", "vgg16"])
def test_larger_pictures_are_taken_too(name: str) -> None:
    with torch.no_grad():
        assert build_net(name).eval()(torch.rand(1, 3, 48, 40)).shape == (1, 10)


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UnknownName, match="no network is called 'resnet19'; did you mean resnet18"):
        build_net("resnet19")


def test_a_network_without_classes_is_refused() -> None:
    with pytest.raises(BadInput, match="a network needs classes >= 1, got 0"):
        build_net("mnist_cnn", classes=0)
