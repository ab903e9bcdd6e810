"""Our own networks for small images, by name.

They take normalised images. Every ReLU is a module of its own and does not work in place. Where
nothing else is said, weights start as torch draws them. To add a network: write it, then add its
line to ``NETS``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from pinprick.errors import BadInput, UnknownName

_VGG16_DEPTHS = (2, 2, 3, 3, 3)  # convolutions before each pooling
_VGG19_DEPTHS = (2, 2, 4, 4, 4)
_VGG_WIDTHS = (64, 128, 256, 512, 512)

BlockType = type["BasicBlock"] | type["Bottleneck"]


def mnist_cnn(classes: int) -> nn.Sequential:
    """Two strided convolutions of 16 and 32 channels, 100 hidden units, for 28x28 images in grey.

    The network of Wong, Rice, Kolter: Fast is better than free. ICLR 2020.
    """
    return nn.Sequential(
        nn.Conv2d(1, 16, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 100),
        nn.ReLU(),
        nn.Linear(100, classes),
    )


def mnist_cnn_large(classes: int) -> nn.Sequential:
    """Two 5x5 convolutions of 32 and 64 channels with pooling, 1024 hidden units.

    The network of Madry et al.: Towards deep learning models resistant to adversarial attacks. ICLR
    2018.
    """
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 1024),
        nn.ReLU(),
        nn.Linear(1024, classes),
    )


class VGG(nn.Module):
    """A VGG for small images: five groups of 3x3 convolutions, each with a pooling after it.

    Simonyan, Zisserman: Very deep convolutional networks for large-scale image recognition. ICLR
    2015. Differs from the paper: batch norm after every convolution, and one linear layer on the
    mean over the image instead of three wide ones.
    """

    def __init__(self, depths: Sequence[int], classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inside = 3
        for depth, width in zip(depths, _VGG_WIDTHS, strict=True):
            for _ in range(depth):
                conv = nn.Conv2d(inside, width, 3, padding=1, bias=False)
                nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
                layers += [conv, nn.BatchNorm2d(width), nn.ReLU()]
                inside = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inside, classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.fc(self.pool(self.features(x)).flatten(1))
        return logits


def vgg16(classes: int) -> VGG:
    return VGG(_VGG16_DEPTHS, classes)


def vgg19(classes: int) -> VGG:
    return VGG(_VGG19_DEPTHS, classes)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    widening = 1

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv(inside, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu1 = nn.ReLU()
        self.conv2 = _conv(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)
        self.shortcut = _shortcut(inside, width, stride)
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.relu1(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out = self.relu2(out + self.shortcut(x))
        return out


class Bottleneck(nn.Module):
    """A 3x3 convolution between two of 1x1, and a shortcut."""

    widening = 4

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv(inside, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu1 = nn.ReLU()
        self.conv2 = _conv(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu2 = nn.ReLU()
        self.conv3 = _conv(width, width * self.widening, 1)
        self.bn3 = nn.BatchNorm2d(width * self.widening)
        self.shortcut = _shortcut(inside, width * self.widening, stride)
        self.relu3 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.relu1(self.bn1(self.conv1(x)))
        out = self.relu2(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out = self.relu3(out + self.shortcut(x))
        return out


class ResNet(nn.Module):
    """A ResNet for small images: a 3x3 stem that keeps the size, no pooling before the end.

    He, Zhang, Ren, Sun: Deep residual learning for image recognition. CVPR 2016. ResNet-18 and -50
    have the four stages and widths of the ImageNet networks. ResNet-20 has the three narrow stages
    of the paper's section on CIFAR-10; its shortcuts that change shape are 1x1 convolutions, which
    differs from the paper. Each stage after the first has half the size of the one before.
    """

    def __init__(
        self, block: BlockType, depths: Sequence[int], widths: Sequence[int], classes: int
    ) -> None:
        super().__init__()
        self.conv1 = _conv(3, widths[0], 3)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.relu = nn.ReLU()
        stages, inside = [], widths[0]
        for number, (depth, width) in enumerate(zip(depths, widths, strict=True)):
            blocks = []
            for i in range(depth):
                blocks.append(block(inside, width, 2 if number and i == 0 else 1))
                inside = width * block.widening
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inside, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        out = self.stages(self.relu(self.bn1(self.conv1(x))))
        logits: Tensor = self.fc(self.pool(out).flatten(1))
        return logits


def resnet18(classes: int) -> ResNet:
    return ResNet(BasicBlock, (2, 2, 2, 2), (64, 128, 256, 512), classes)


def resnet50(classes: int) -> ResNet:
    return ResNet(Bottleneck, (3, 4, 6, 3), (64, 128, 256, 512), classes)


def resnet20(classes: int) -> ResNet:
    return ResNet(BasicBlock, (3, 3, 3), (16, 32, 64), classes)


def _conv(inside: int, outside: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inside, outside, size, stride=stride, padding=size // 2, bias=False)


def _shortcut(inside: int, outside: int, stride: int) -> nn.Module:
    if stride == 1 and inside == outside:
        return nn.Identity()
    return nn.Sequential(_conv(inside, outside, 1, stride), nn.BatchNorm2d(outside))


@dataclass(frozen=True)
class Design:
    """How a network is built, and which images it takes.

    Attributes:
        build: Makes the network for a number of classes.
        channels: Channels of an image.
        size: Height and width of the images it was designed for.
        fixed: Whether the network refuses images of any other size.
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
