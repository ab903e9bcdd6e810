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


# Too many groups joined into few, by k-means on where they lie.
#
# Groups stay whole: what is clustered are their centres, each as heavy as the change it holds. The
# first centres are the heaviest group and then, one after another, the one farthest from all
# chosen so far (its weight times the squared distance), so nothing is drawn at random.


_ROUNDS = 25
_EXACT = "donot_use_mm_for_euclid_dist"
_ROOM = 2**24  # distances that are held at a time

Places = Float[Tensor, "batch group 2"]
Centres = Float[Tensor, "batch cluster 2"]
Weights = Float[Tensor, "batch group"]


def join_groups(groups: Groups, size: Float[Tensor, "batch height width"], most: int) -> Groups:
    """The same groups where an image has at most ``most``, joined to so many where it has more.

    Args:
        groups: Of a batch of images.
        size: How large the change of each pixel is.
        most: How many groups an image may have.
    """
    rows = (groups.count > most).nonzero().squeeze(1)
    if not len(rows):
        return groups
    index, count = groups.index.clone(), groups.count.clone()
    for some in rows.split(max(1, _ROOM // (most * groups.most))):
        joined = _join(Groups(index[some], count[some]), size[some], most)
        index[some], count[some] = joined.index, joined.count
    return Groups(index, count)


def _join(groups: Groups, size: Tensor, most: int) -> Groups:
    weight = groups.total(size)
    number = _k_means(_centres(groups, size, weight), weight, most)
    name = number.gather(1, groups.index.flatten(1).clamp_min(0)).view_as(groups.index)
    return number_in_order(name, groups.index >= 0)


def _centres(groups: Groups, size: Tensor, weight: Weights) -> Places:
    height, width = groups.index.shape[1:]
    down = torch.arange(height, device=size.device).view(1, -1, 1).expand_as(groups.index)
    across = torch.arange(width, device=size.device).view(1, 1, -1).expand_as(groups.index)
    moments = torch.stack([groups.total(down * size), groups.total(across * size)], dim=2)
    return moments / weight.clamp_min(torch.finfo(weight.dtype).tiny).unsqueeze(2)


def _k_means(places: Places, weight: Weights, most: int) -> Int[Tensor, "batch group"]:
    """The number of each group's cluster, below ``most``."""
    batch = torch.arange(len(places), device=places.device)
    centres = places[batch, weight.argmax(dim=1)].unsqueeze(1)
    for _ in range(most - 1):
        gap = _gaps(places, centres).amin(dim=2)
        centres = torch.cat(
            [centres, places[batch, (weight * gap).argmax(dim=1)].unsqueeze(1)], dim=1
        )
    nearest = _gaps(places, centres).argmin(dim=2)
    for _ in range(_ROUNDS):
        centres = _means(places, weight, nearest, centres)
        before, nearest = nearest, _gaps(places, centres).argmin(dim=2)
        if torch.equal(before, nearest):
            break
    return nearest


def _gaps(places: Places, centres: Centres) -> Float[Tensor, "batch group cluster"]:
    """Squared distances, worked out the same way whatever the size of the batch."""
    return torch.cdist(places, centres, compute_mode=_EXACT).square()


def _means(places: Places, weight: Weights, nearest: Tensor, centres: Centres) -> Centres:
    """The centre of gravity of each cluster; where it was, if the cluster is empty."""
    mass = torch.zeros_like(centres[:, :, 0]).scatter_add_(1, nearest, weight)
    wide = nearest.unsqueeze(2).expand_as(places)
    moments = torch.zeros_like(centres).scatter_add_(1, wide, places * weight.unsqueeze(2))
    full = (mass > 0).unsqueeze(2)
    return torch.where(full, moments / mass.clamp_min(1e-300).unsqueeze(2), centres)
