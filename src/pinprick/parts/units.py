"""What an l0 attack counts: elements (channel values), or pixels with all their channels.

Images have the shape (batch, channel, height, width); what is said of units has (batch, unit).
"""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from pinprick.types import Images, PerImage


@dataclass(frozen=True)
class Units:
    """The change from values to units and back."""

    unit: Literal["elements", "pixels"]

    def total(self, values: Tensor) -> Tensor:
        """Values added up over each unit."""
        return (values if self.unit == "elements" else values.sum(dim=1)).flatten(1)

    def largest(self, values: Tensor) -> Tensor:
        """The largest value of each unit."""
        return (values if self.unit == "elements" else values.amax(dim=1)).flatten(1)

    def spread(self, units: Tensor, images: Images) -> Tensor:
        """What is said of a unit, said of each of its values, in the shape of ``images``."""
        batch, _, height, width = images.shape
        if self.unit == "elements":
            return units.view_as(images)
        return units.view(batch, 1, height, width).expand_as(images)

    def planes(self, values: Tensor) -> Tensor:
        """Values as (batch, channel, unit); elements have one channel, a unit for each value."""
        wide = values if self.unit == "pixels" else values.flatten(1).unsqueeze(1)
        return wide.flatten(2).contiguous()

    def changed(self, adv: Images, images: Images) -> Tensor:
        """Which units differ."""
        differs = adv != images
        return (differs if self.unit == "elements" else differs.any(dim=1)).flatten(1)

    def count(self, adv: Images, images: Images) -> PerImage:
        """How many units differ."""
        return self.changed(adv, images).sum(dim=1).float()  # half precision ends at 2048


def take(planes: Tensor, places: Tensor) -> Tensor:
    """The values of ``planes``, (..., channel, unit), at some units, (..., place)."""
    return planes.gather(-1, places.unsqueeze(-2).expand(*planes.shape[:-1], -1))
