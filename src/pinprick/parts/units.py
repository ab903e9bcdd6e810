"""What an l0 attack counts: elements, pixels with all their channels, or squares of pixels.

Images have the shape (batch, channel, height, width); values per unit have (batch, unit).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn import functional as F

from pinprick.metrics.unit import Unit, check_unit
from pinprick.types import Images, PerImage

WINDOW = 8  # side of the windows by which GSE compares changes, in pixels


@dataclass(frozen=True)
class Units:
    """Conversion from values to units and back.

    Attributes:
        unit: What counts as one unit: "elements" or "pixels".
    """

    unit: Unit

    def __post_init__(self) -> None:
        check_unit(self.unit)

    def total(self, values: Tensor) -> Tensor:
        """The sum of the values of each unit."""
        return (values if self.unit == "elements" else values.sum(dim=1)).flatten(1)

    def largest(self, values: Tensor) -> Tensor:
        """The largest value of each unit."""
        return (values if self.unit == "elements" else values.amax(dim=1)).flatten(1)

    def norms(self, values: Tensor) -> Tensor:
        """The l2 norm of each unit, repeated for all its elements."""
        if self.unit == "elements" or values.shape[1] == 1:
            return values.abs()
        return values.square().sum(dim=1, keepdim=True).sqrt().expand_as(values)

    def spread(self, units: Tensor, images: Images) -> Tensor:
        """The value of each unit, repeated for all its elements, in the shape of ``images``."""
        batch, _, height, width = images.shape
        if self.unit == "elements":
            return units.view_as(images)
        return units.view(batch, 1, height, width).expand_as(images)

    def planes(self, values: Tensor) -> Tensor:
        """Values as (batch, channel, unit); elements have one channel and one unit per value."""
        wide = values if self.unit == "pixels" else values.flatten(1).unsqueeze(1)
        return wide.flatten(2).contiguous()

    def changed(self, adv: Images, images: Images) -> Tensor:
        """Which units differ."""
        differs = adv != images
        return (differs if self.unit == "elements" else differs.any(dim=1)).flatten(1)

    def count(self, adv: Images, images: Images) -> PerImage:
        """How many units differ."""
        return self.changed(adv, images).sum(dim=1).float()  # half precision ends at 2048


def count_windows(changed: Bool[Tensor, "batch height width"], side: int) -> PerImage:
    """How many windows of ``side`` x ``side`` pixels hold a changed pixel; windows overlap.

    A window is no larger than the image.
    """
    height, width = (min(side, length) for length in changed.shape[1:])
    return F.max_pool2d(changed.float(), (height, width), stride=1).flatten(1).sum(dim=1)


def take(planes: Tensor, places: Tensor) -> Tensor:
    """The values of ``planes``, (..., channel, unit), at some units, (..., index)."""
    return planes.gather(-1, places.unsqueeze(-2).expand(*planes.shape[:-1], -1))


def smooth_l0_slope(delta: Images, sigma: float, units: Units) -> Images:
    """The gradient by ``delta`` of a smooth count of changed units, after σ-zero.

    count(d) = (1/n) sum_i |d_i|^2 / (|d_i|^2 + sigma)    |d_i|: l2 norm over the unit's values
    """
    totals = units.total(delta.square())
    squares = units.spread(totals, delta)
    return 2 * sigma / totals.shape[1] * delta / (squares + sigma).square()


def shrink_groups(change: Tensor, by: float, side: int) -> Tensor:
    """``change`` with the l2 norm of every group of ``side`` x ``side`` pixels reduced by ``by``.

    A group with a smaller norm becomes zero. This is the proximal step of ``by`` times the sum of
    the norms of the groups, which hold all channels and tile each image.
    """
    height, width = change.shape[2:]
    squares = F.pad(change.square().sum(dim=1), (0, -width % side, 0, -height % side))
    tall, wide = squares.shape[1] // side, squares.shape[2] // side
    norm = squares.view(-1, tall, side, wide, side).sum(dim=(2, 4)).sqrt()
    factor = (1 - by / norm.clamp_min(torch.finfo(norm.dtype).tiny)).clamp_min(0)
    factor = factor.repeat_interleave(side, dim=1).repeat_interleave(side, dim=2)
    return change * factor[:, None, :height, :width]
