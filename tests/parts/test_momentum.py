"""Momentum: equal shares, whatever the size of a gradient."""

import torch

from pinprick.parts.box import accumulate


def test_adds_a_gradient_of_size_one() -> None:
    velocity = torch.full((2, 1, 1, 2), 0.5)
    grad = torch.tensor([[3.0, -1.0], [1e-30, 0.0]]).view(2, 1, 1, 2)
    expected = torch.tensor([[1.0, 0.0], [1.25, 0.25]]).view(2, 1, 1, 2)
    assert torch.allclose(accumulate(velocity, grad, 0.5), expected)


def test_no_gradient_adds_nothing() -> None:
    velocity = torch.ones(1, 3, 2, 2)
    assert torch.equal(accumulate(velocity, torch.zeros_like(velocity), 1.0), velocity)
