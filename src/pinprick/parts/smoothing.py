"""Smoothing gradients over neighbouring pixels.

The kernels are those of translation-invariant attacks, ``size = 2m + 1`` pixels wide. Each is the
outer product of a profile with itself, so an image is smoothed along one side and then the other:

    gaussian   exp(-u^2 / 2), u evenly spaced from -3 to 3: a deviation of (size - 1) / 6 pixels
    uniform    1
    linear     1 - |i| / (m + 1), i = -m ... m
"""

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick.errors import BadInput
from pinprick.parts.choice import check_choice
from pinprick.types import Images

Kernel = Literal["gaussian", "uniform", "linear"]


def check_kernel(name: str, kernel: str, size: int) -> None:
    """Raise ``BadInput`` unless there is a kernel of this shape and size."""
    check_choice(name, "kernel", kernel, get_args(Kernel))
    if size < 1 or size % 2 == 0:
        raise BadInput(f"{name} needs kernel_size to be odd, as in 3, 7 or 15, got {size}")


def kernel_profile(kernel: Kernel, size: int) -> Tensor:
    """The profile of a kernel, of sum one; ``size`` is odd."""
    middle = size // 2
    place = torch.arange(-middle, middle + 1, dtype=torch.float64)
    if kernel == "gaussian":
        profile = (-(3 * place / max(1, middle)).square() / 2).exp()
    elif kernel == "uniform":
        profile = torch.ones_like(place)
    else:
        profile = 1 - place.abs() / (middle + 1)
    return profile / profile.sum()


def smooth(grad: Images, profile: Tensor) -> Images:
    """``grad`` smoothed channel by channel; beyond the edge of the image there is nothing."""
    channels, middle = grad.flatten(0, 1).unsqueeze(1), len(profile) // 2
    down = F.conv2d(channels, profile.view(1, 1, -1, 1), padding=(middle, 0))
    across = F.conv2d(down, profile.view(1, 1, 1, -1), padding=(0, middle))
    return across.view_as(grad)
