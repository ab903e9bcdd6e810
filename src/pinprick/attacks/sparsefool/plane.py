"""SparseFool's linear solver: to a plane by as few elements as the box allows, in closed form."""

import torch
from torch.nn import functional as F

from pinprick.types import Images

_BEYOND = 1e-3  # how far behind the plane the last element aims
_SHORTEST = 1e-4  # the least that the last element moves


def to_plane(images: Images, normal: Images, way: Images, low: Images, high: Images) -> Images:
    """The images moved to the plane through ``images + way``, by the elements of largest normal.

    Where there is no way to go, the image stays as it is; where the box ends before the plane,
    everything goes to the end of the box.
    """
    precise = torch.promote_types(images.dtype, torch.float32)  # long sums need that much
    x, slope, way, low, high = (v.to(precise).flatten(1) for v in (images, normal, way, low, high))
    size = slope.square().sum(dim=1, keepdim=True).sqrt()
    slope = slope / torch.where(size > 0, size, 1)
    gap = (slope * way).sum(dim=1, keepdim=True).abs()  # ahead, also where it lies behind
    weight, order = slope.abs().sort(dim=1, descending=True, stable=True)
    start = x.gather(1, order)
    sign = slope.gather(1, order).sign()
    edge = torch.where(slope > 0, high, low).gather(1, order)
    room = (edge - start).abs()
    closed = F.pad((weight * room).cumsum(dim=1), (1, -1))  # by all elements before this one
    needed = ((gap + _BEYOND - closed) / weight).clamp_min(_SHORTEST)
    end = torch.where(needed < room, start + sign * needed, edge)
    end = torch.where((closed < gap) & (weight > 0), end, start)
    return torch.empty_like(x).scatter_(1, order, end).view_as(images).to(images.dtype)
