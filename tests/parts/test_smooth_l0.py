"""The smooth count against autograd, and the two ends of the learning rate."""

from typing import Literal

import pytest
import torch

from pinprick.parts.adam import falling_rate
from pinprick.parts.units import Units, smooth_l0_slope


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_the_slope_is_that_of_the_count(unit: Literal["elements", "pixels"]) -> None:
    delta = torch.randn(3, 2, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    delta[0, :, 0, 0] = 0
    delta.requires_grad_()
    squares = delta.square()
    squares = squares.flatten(1) if unit == "elements" else squares.sum(dim=1).flatten(1)
    count = (squares / (squares + 0.1)).mean(dim=1).sum()
    (slope,) = torch.autograd.grad(count, delta)
    assert torch.allclose(smooth_l0_slope(delta.detach(), 0.1, Units(unit)), slope)


def test_the_learning_rate_falls_to_a_tenth() -> None:
    assert falling_rate(2.0, 0, 10) == pytest.approx(2.0)
    assert falling_rate(2.0, 5, 10) == pytest.approx(1.1)
    assert falling_rate(2.0, 10, 10) == pytest.approx(0.2)
