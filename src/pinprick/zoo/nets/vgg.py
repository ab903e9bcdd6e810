"""VGG-16 and VGG-19 for small pictures: 3x3 convolutions with batch norm, one linear layer.

Simonyan, Zisserman: Very deep convolutional networks for large-scale image recognition. ICLR 2015.

Differs from the paper: batch norm after every convolution, and in place of three wide linear
layers, which 32x32 pictures do not need, the mean over what is left of the picture and one layer.
"""

from collections.abc import Sequence

from torch import Tensor, nn

_DEPTHS_16 = (2, 2, 3, 3, 3)  # convolutions before each pooling
_DEPTHS_19 = (2, 2, 4, 4, 4)
_WIDTHS = (64, 128, 256, 512, 512)


class VGG(nn.Module):
    """Five groups of convolutions, each followed by a pooling that halves the size."""

    def __init__(self, depths: Sequence[int], classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inside = 3
        for depth, width in zip(depths, _WIDTHS, strict=True):
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
    return VGG(_DEPTHS_16, classes)


def vgg19(classes: int) -> VGG:
    return VGG(_DEPTHS_19, classes)
