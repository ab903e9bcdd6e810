"""Our own networks, by name. To add one: write its file, then add its line here.

They see normalised images. Every ReLU is a module of its own and leaves its input as it was.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from pinprick.errors import BadInput, UnknownName
from pinprick.zoo.nets.mnist import mnist_cnn, mnist_cnn_large
from pinprick.zoo.nets.resnet import resnet18, resnet20, resnet50
from pinprick.zoo.nets.vgg import vgg16, vgg19


@dataclass(frozen=True)
class Design:
    """How a network is built, and what it is for.

    Attributes:
        build: Makes the network for a number of classes.
        channels: Channels of a picture.
        size: Height and width of the pictures it was made for.
        fixed: Whether pictures of any other size are refused by the network.
    """

    build: Callable[[int], nn.Module]
    channels: int = 3
    size: tuple[int, int] = (32, 32)
    fixed: bool = False


NETS: dict[str, Design] = {
    "resnet18": Design(resnet18),
    "resnet50": Design(resnet50),
    "vgg16": Design(vgg16),
    "vgg19": Design(vgg19),
    "resnet20": Design(resnet20),
    "mnist_cnn": Design(mnist_cnn, channels=1, size=(28, 28), fixed=True),
    "mnist_cnn_large": Design(mnist_cnn_large, channels=1, size=(28, 28), fixed=True),
}


def build_net(name: str, *, classes: int = 10) -> nn.Module:
    """The network called ``name`` with fresh weights, drawn from torch's generator."""
    if name not in NETS:
        raise UnknownName("network", name, NETS)
    if classes < 1:
        raise BadInput(f"a network needs classes >= 1, got {classes}")
    return NETS[name].build(classes)


__all__ = ["NETS", "Design", "build_net"]
