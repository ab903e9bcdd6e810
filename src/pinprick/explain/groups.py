"""Connected groups of changed pixels, for a whole batch at a time.

Two changed pixels belong to one group if they touch, corners included, once each has grown by
``radius`` on all sides. Groups are numbered in reading order.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from pinprick.types import Counts

Changed = Bool[Tensor, "batch height width"]
Index = Int[Tensor, "batch height width"]


@dataclass(frozen=True)
class Groups:
    """Which pixels belong together.

    Attributes:
        index: The number of each pixel's group; -1 where nothing changed.
        count: How many groups each image has.
    """

    index: Index
    count: Counts

    @property
    def most(self) -> int:
        """The most groups of any image, and one at least."""
        return max(1, int(self.count.max())) if len(self.count) else 1

    def total(self, values: Float[Tensor, "batch height width"]) -> Float[Tensor, "batch group"]:
        """Values added up over the pixels of each group, in double precision."""
        sums = values.new_zeros(len(values), self.most + 1, dtype=torch.double)
        sums.scatter_add_(1, self.index.flatten(1) + 1, values.flatten(1).double())
        return sums[:, 1:]


def connected_groups(changed: Changed, radius: int) -> Groups:
    """The connected groups of ``changed`` pixels, grown by ``radius`` before they are joined."""
    grown = changed
    if radius:
        wide = 2 * radius + 1
        grown = F.max_pool2d(changed.float(), wide, stride=1, padding=radius) > 0
    return number_in_order(_first_place(grown), changed)


def single_pixels(changed: Changed) -> Groups:
    """Every changed pixel as a group of its own."""
    place = torch.arange(changed[0].numel(), device=changed.device).expand(len(changed), -1)
    return number_in_order(place.view_as(changed), changed)


def number_in_order(name: Index, changed: Changed) -> Groups:
    """Groups in reading order, from any name below height x width that each pixel goes by."""
    flat, names = changed.flatten(1), name.flatten(1)
    place = torch.arange(flat.shape[1], device=name.device).expand_as(names)
    last = flat.shape[1] - 1
    first = torch.full_like(names, last).scatter_reduce_(
        1, names, torch.where(flat, place, last), "amin"
    )
    first = first.gather(1, names)  # the first changed place of the group that a pixel belongs to
    opens = flat & (first == place)
    number = (opens.long().cumsum(dim=1) - 1).gather(1, first).view_as(name)
    return Groups(torch.where(changed, number, -1), opens.sum(dim=1))


def _first_place(grown: Changed) -> Index:
    """For each pixel, the first place in reading order of its component; its own outside."""
    batch, height, width = grown.shape
    place = torch.arange(height * width, device=grown.device).view(1, height, width)
    far = float(height * width)
    least = torch.where(grown, place, far).double()
    while True:
        near = -F.max_pool2d(-least, 3, stride=1, padding=1)
        near = torch.where(grown, near, far)
        flat = torch.cat([near.flatten(1), near.new_full((batch, 1), far)], dim=1)
        leap = flat.gather(1, near.flatten(1).long()).view_as(near)  # the place that place knows
        if torch.equal(leap, least):
            return torch.where(grown, least.long(), place)
        least = leap
