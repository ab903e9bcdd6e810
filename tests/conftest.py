"""Models whose right answers are known, and images to go with them."""

import pytest
import torch
from hypothesis import HealthCheck, settings
from torch import Tensor

from pinprick import Classifier
from pinprick.oracle import exact_images, exact_linear

__all__ = ["exact_images", "exact_linear"]

settings.register_profile(  # the same examples everywhere, however slow the machine
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")


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
