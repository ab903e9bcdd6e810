"""ResNets for small pictures: a 3x3 stem that keeps the size, and no pooling before the end.

He, Zhang, Ren, Sun: Deep residual learning for image recognition. CVPR 2016.

ResNet-18 and -50 have the four stages and widths of the ImageNet networks, ResNet-20 the three
narrow ones (16, 32, 64) of the paper's section on CIFAR-10.

Differs from the paper: where a block changes shape, ResNet-20's shortcut is a 1x1 convolution, as
in the larger ones.
"""

from collections.abc import Sequence

from torch import Tensor, nn

BlockType = type["BasicBlock"] | type["Bottleneck"]


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
    """Stages of blocks, each after the first at half the size of the one before."""

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
            for place in range(depth):
                blocks.append(block(inside, width, 2 if number and place == 0 else 1))
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
