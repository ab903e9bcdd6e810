"""Kernels in numbers, and smoothing against a convolution written out."""

import pytest
import torch

from pinprick.attacks.tifgsm import Kernel, kernel_profile, smooth


def test_profiles_are_those_of_the_paper() -> None:
    assert kernel_profile("uniform", 3).tolist() == pytest.approx([1 / 3] * 3)
    assert kernel_profile("linear", 5).tolist() == pytest.approx(
        [1 / 9, 2 / 9, 3 / 9, 2 / 9, 1 / 9]
    )
    ratio = kernel_profile("gaussian", 15)
    deviation = (torch.arange(-7, 8).double().square() @ ratio).sqrt()
    assert deviation == pytest.approx(14 / 6, rel=0.02)  # cut off at three deviations
    assert (ratio[7] / ratio[0]).item() == pytest.approx(torch.tensor(4.5).exp().item())


@pytest.mark.parametrize("kernel", ["gaussian", "uniform", "linear"])
@pytest.mark.parametrize("size", [1, 3, 21])
def test_profiles_have_sum_one_and_are_even(kernel: Kernel, size: int) -> None:
    profile = kernel_profile(kernel, size)
    assert len(profile) == size
    assert profile.sum().item() == pytest.approx(1)
    assert torch.equal(profile, profile.flip(0))


def test_a_point_becomes_the_kernel_in_its_own_channel() -> None:
    profile = kernel_profile("linear", 3)
    grad = torch.zeros(2, 3, 6, 5, dtype=torch.float64)
    grad[1, 2, 0, 3] = 1.0
    smoothed = smooth(grad, profile)
    expected = torch.zeros_like(grad)
    expected[1, 2, :2, 2:5] = torch.outer(profile[1:], profile)  # cut off at the upper edge
    assert torch.allclose(smoothed, expected)
