"""Models whose right answers are known, and images to go with them."""

import pytest
import torch
from torch import Tensor, nn

from pinprick import Classifier


def exact_linear(classes: int, shape: tuple[int, int, int], seed: int = 0) -> Classifier:
    """A linear model in float64 whose weights are small multiples of 1/256: sums are exact."""
    generator = torch.Generator().manual_seed(seed)
    layer = nn.Linear(torch.Size(shape).numel(), classes).double()
    layer.weight.data = torch.randint(-64, 65, layer.weight.shape, generator=generator).double()
    layer.weight.data /= 256
    layer.bias.data.zero_()
    return Classifier(nn.Sequential(nn.Flatten(), layer), name="exact linear")


def exact_images(count: int, shape: tuple[int, int, int], seed: int = 1) -> Tensor:
    """Images in float64 whose values are multiples of 1/256, none at the edge of the box."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(32, 225, (count, *shape), generator=generator).double() / 256


@pytest.fixture
def linear() -> Classifier:
    return exact_linear(4, (3, 6, 5))


@pytest.fixture
def images() -> Tensor:
    return exact_images(6, (3, 6, 5))


@pytest.fixture
def labels(linear: Classifier, images: Tensor) -> Tensor:
    """What the linear model says of the images, so that every one is right to begin with."""
    with torch.no_grad():
        return linear(images).argmax(dim=1)
