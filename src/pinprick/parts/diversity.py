"""Input diversity: gradients through random resizing and padding of the image.

Each image is, with some probability, resized by nearest neighbour and put at a random position of
a padded canvas. ``ratio`` is the side of the image divided by that of the canvas:

    "shrink"    the canvas is as large as the image, the image a side of ratio * S to S - 1
    "enlarge"   the canvas has a side of S / ratio, the image one of S to the canvas's less one

Resizing and padding are a matrix for each side of the image, so the way back is its transpose.
"""

from typing import Literal

import torch
from torch import Tensor

from pinprick.problem import Problem
from pinprick.types import Images, Mask

Resize = Literal["shrink", "enlarge"]


def diverse_gradient(
    problem: Problem,
    images: Images,
    *,
    step: int,
    probability: float,
    resize: Resize,
    ratio: float,
    pad_value: float,
) -> Images:
    """Gradient of the cross-entropy through one random view of each image."""
    if probability == 0:
        return problem.gradient(images, problem.goal.cross_entropy)
    viewed = problem.rng.uniform(step=step, use="diversity, whether") < probability
    down, across = _views(problem, images, viewed, step=step, resize=resize, ratio=ratio)
    if resize == "shrink":
        return _gradient_through(problem, images, down, across, pad_value)
    grad = torch.empty_like(images)  # the two kinds differ in size, so each is asked by itself
    rows, rest = viewed.nonzero().squeeze(1), (~viewed).nonzero().squeeze(1)
    if len(rows):
        grad[rows] = _gradient_through(
            problem[rows], images[rows], down[rows], across[rows], pad_value
        )
    if len(rest):
        part = problem[rest]
        grad[rest] = part.gradient(images[rest], part.goal.cross_entropy)
    return grad


def _views(
    problem: Problem, images: Images, viewed: Mask, *, step: int, resize: Resize, ratio: float
) -> tuple[Tensor, Tensor]:
    """Resizing and padding of each image's height and width; nothing changes unless ``viewed``."""
    bits = problem.rng.integers(_BITS, 3, step=step, use="diversity, size and place").unbind(dim=1)
    matrices = []
    for side, offset_bits in zip(images.shape[2:], bits[1:], strict=True):
        canvas = side if resize == "shrink" else round(side / ratio)
        least = max(1, int(ratio * side)) if resize == "shrink" else side
        drawn = least + _below(max(1, canvas - least), bits[0])  # one draw for both sides
        offset = _below(canvas - drawn + 1, offset_bits)
        if resize == "shrink":
            drawn, offset = drawn.where(viewed, side), offset.where(viewed, 0)
        place = torch.arange(canvas, device=images.device) - offset.unsqueeze(1)
        source = (place * side).div(drawn.unsqueeze(1), rounding_mode="floor")
        chosen = source.unsqueeze(2) == torch.arange(side, device=images.device)
        matrices.append(chosen.to(images.dtype).unsqueeze(1))  # all zero outside the image
    down, across = matrices
    return down, across


def _gradient_through(
    problem: Problem, images: Images, down: Tensor, across: Tensor, pad_value: float
) -> Images:
    inside = down.sum(dim=3, keepdim=True) @ across.sum(dim=3, keepdim=True).mT
    view = down @ images @ across.mT + pad_value * (1 - inside)
    grad = problem.gradient(view, problem.goal.cross_entropy)
    return down.mT @ grad @ across


_BITS = 1 << 24


def _below(count: Tensor | int, bits: Tensor) -> Tensor:
    """Whole numbers in [0, count) from 24 random bits each."""
    return bits * count // _BITS
