"""Groups of changed pixels, for a whole batch at a time.

Two changed pixels are connected if they touch, corners included, after each is dilated by
``radius``. Groups are numbered in reading order.

Too many groups are joined by k-means on their centres, weighted by the size of their change. Groups
stay whole. The first cluster centre is the heaviest group. Each further one is the group with the
largest product of weight and squared distance to the centres so far. Nothing is random.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from pinprick.types import Counts

Changed = Bool[Tensor, "batch height width"]
Index = Int[Tensor, "batch height width"]
GroupCentres = Float[Tensor, "batch group 2"]  # row and column
ClusterCentres = Float[Tensor, "batch cluster 2"]
Weights = Float[Tensor, "batch group"]

_K_MEANS_ROUNDS = 25
_EXACT_DISTANCES = "donot_use_mm_for_euclid_dist"  # the same in any batch
_DISTANCES_AT_ONCE = 2**24


@dataclass(frozen=True)
class Groups:
    """The groups of a batch.

    Attributes:
        index: The number of each pixel's group; -1 for unchanged pixels.
        count: The number of groups per image.
    """

    index: Index
    count: Counts

    @property
    def most(self) -> int:
        """The largest number of groups of any image, at least one."""
        return max(1, int(self.count.max())) if len(self.count) else 1

    def total(self, values: Float[Tensor, "batch height width"]) -> Float[Tensor, "batch group"]:
        """The sum of ``values`` over the pixels of each group, in double precision."""
        sums = values.new_zeros(len(values), self.most + 1, dtype=torch.double)
        sums.scatter_add_(1, self.index.flatten(1) + 1, values.flatten(1).double())
        return sums[:, 1:]


def connected_groups(changed: Changed, radius: int, *, corners: bool = True) -> Groups:
    """The connected groups of ``changed`` pixels after dilation by ``radius``.

    Without ``corners``, pixels touch along their sides only: each has 4 neighbours, not 8.
    """
    dilated = changed
    if radius:
        wide = 2 * radius + 1
        dilated = F.max_pool2d(changed.float(), wide, stride=1, padding=radius) > 0
    return number_in_order(_first_pixel(dilated, corners=corners), changed)


def single_pixels(changed: Changed) -> Groups:
    """Every changed pixel as a group of its own."""
    pixel = torch.arange(changed[0].numel(), device=changed.device).expand(len(changed), -1)
    return number_in_order(pixel.view_as(changed), changed)


def number_in_order(name: Index, changed: Changed) -> Groups:
    """Number groups in reading order; pixels of one group have the same ``name``.

    Names are any integers from 0 to below height x width.
    """
    flat, names = changed.flatten(1), name.flatten(1)
    pixel = torch.arange(flat.shape[1], device=name.device).expand_as(names)
    last = flat.shape[1] - 1
    first = torch.full_like(names, last).scatter_reduce_(
        1, names, torch.where(flat, pixel, last), "amin"
    )
    first = first.gather(1, names)  # the first changed pixel of each pixel's group
    opens = flat & (first == pixel)
    number = (opens.long().cumsum(dim=1) - 1).gather(1, first).view_as(name)
    return Groups(torch.where(changed, number, -1), opens.sum(dim=1))


def _first_pixel(dilated: Changed, *, corners: bool) -> Index:
    """The index of the first pixel of each pixel's component; its own index outside."""
    batch, height, width = dilated.shape
    pixel = torch.arange(height * width, device=dilated.device).view(1, height, width)
    far = float(height * width)
    least = torch.where(dilated, pixel, far).double()
    reaches = [(3, 3)] if corners else [(3, 1), (1, 3)]
    while True:
        near = least
        for tall, wide in reaches:
            pooled = F.max_pool2d(-least, (tall, wide), stride=1, padding=(tall // 2, wide // 2))
            near = torch.minimum(near, -pooled)
        near = torch.where(dilated, near, far)
        flat = torch.cat([near.flatten(1), near.new_full((batch, 1), far)], dim=1)
        leap = flat.gather(1, near.flatten(1).long()).view_as(near)  # what that pixel points to
        if torch.equal(leap, least):
            return torch.where(dilated, least.long(), pixel)
        least = leap


def join_groups(groups: Groups, size: Float[Tensor, "batch height width"], most: int) -> Groups:
    """The same groups, joined to ``most`` in images that have more.

    Args:
        groups: The groups of a batch.
        size: Size of the change of each pixel.
        most: Largest number of groups per image.
    """
    rows = (groups.count > most).nonzero().squeeze(1)
    if not len(rows):
        return groups
    index, count = groups.index.clone(), groups.count.clone()
    for some in rows.split(max(1, _DISTANCES_AT_ONCE // (most * groups.most))):
        joined = _join(Groups(index[some], count[some]), size[some], most)
        index[some], count[some] = joined.index, joined.count
    return Groups(index, count)


def _join(groups: Groups, size: Tensor, most: int) -> Groups:
    weight = groups.total(size)
    number = _k_means(_centres(groups, size, weight), weight, most)
    name = number.gather(1, groups.index.flatten(1).clamp_min(0)).view_as(groups.index)
    return number_in_order(name, groups.index >= 0)


def _centres(groups: Groups, size: Tensor, weight: Weights) -> GroupCentres:
    height, width = groups.index.shape[1:]
    down = torch.arange(height, device=size.device).view(1, -1, 1).expand_as(groups.index)
    across = torch.arange(width, device=size.device).view(1, 1, -1).expand_as(groups.index)
    moments = torch.stack([groups.total(down * size), groups.total(across * size)], dim=2)
    return moments / weight.clamp_min(torch.finfo(weight.dtype).tiny).unsqueeze(2)


def _k_means(centres: GroupCentres, weight: Weights, most: int) -> Int[Tensor, "batch group"]:
    """The index of each group's cluster, below ``most``."""
    batch = torch.arange(len(centres), device=centres.device)
    clusters = centres[batch, weight.argmax(dim=1)].unsqueeze(1)
    for _ in range(most - 1):
        distance = _squared_distances(centres, clusters).amin(dim=2)
        clusters = torch.cat(
            [clusters, centres[batch, (weight * distance).argmax(dim=1)].unsqueeze(1)], dim=1
        )
    nearest = _squared_distances(centres, clusters).argmin(dim=2)
    for _ in range(_K_MEANS_ROUNDS):
        clusters = _means(centres, weight, nearest, clusters)
        before, nearest = nearest, _squared_distances(centres, clusters).argmin(dim=2)
        if torch.equal(before, nearest):
            break
    return nearest


def _squared_distances(
    centres: GroupCentres, clusters: ClusterCentres
) -> Float[Tensor, "batch group cluster"]:
    """Squared distances, the same in any batch."""
    return torch.cdist(centres, clusters, compute_mode=_EXACT_DISTANCES).square()


def _means(
    centres: GroupCentres, weight: Weights, nearest: Tensor, clusters: ClusterCentres
) -> ClusterCentres:
    """The weighted mean of each cluster; its old centre if it is empty."""
    mass = torch.zeros_like(clusters[:, :, 0]).scatter_add_(1, nearest, weight)
    wide = nearest.unsqueeze(2).expand_as(centres)
    moments = torch.zeros_like(clusters).scatter_add_(1, wide, centres * weight.unsqueeze(2))
    full = (mass > 0).unsqueeze(2)
    return torch.where(full, moments / mass.clamp_min(1e-300).unsqueeze(2), clusters)
