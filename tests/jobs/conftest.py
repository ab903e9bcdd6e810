"""A small model of the user's own."""

import pytest
import torch
from torch import nn

from pinprick import Classifier
from pinprick.zoo.prepare import short_side_and_crop


@pytest.fixture
def colours() -> Classifier:
    """Scores are means of the three channels of 8 x 8 pixels."""
    layer = nn.Linear(192, 3, bias=False)
    layer.weight.data = (10 * torch.eye(3) / 64).repeat_interleave(64, dim=1)
    return Classifier(
        nn.Sequential(nn.Flatten(), layer).eval(),
        classes=("red", "green", "blue"),
        size=(8, 8),
        name="colours",
        prepare=short_side_and_crop(8, 8),
    )
