"""Too many groups joined into few, by k-means on where they lie.

Groups stay whole: what is clustered are their centres, each as heavy as the change it holds. The
first centres are the heaviest group and then, one after another, the one farthest from all
chosen so far (its weight times the squared distance), so nothing is drawn at random.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pinprick.explain.groups import Groups, number_in_order

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
