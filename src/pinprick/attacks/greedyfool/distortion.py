"""How well a change hides at each pixel: 1 where it does, 0 where it would be seen.

The paper trains a network for this map. Two formulas take its place here, both cheap, the same for
every dataset, and made from the image alone: the HILL cost of steganography (Li, Wang, Huang, Li:
A new cost function for spatial image steganography. ICIP 2014) and the sigma-map of Croce and Hein.

    busy   = |grey * KB| averaged over 3x3,    cost = 1 / busy averaged over 15x15
    rho    = cost, scaled to [0, 1]            HILL
    rho    = 1 - sigma, scaled to [0, 1]       sigma-map
    weight = 1 - rho, less its 30th percentile, over the 75th percentile of that, in [0, 1],
             averaged over 3x3
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick.parts.sigma_map import sigma_map
from pinprick.types import Images

Distortion = Literal["none", "hill", "sigma"]

_GREY = (0.299, 0.587, 0.114)  # how much red, green and blue count for brightness
_HIGH_PASS = ((-1.0, 2.0, -1.0), (2.0, -4.0, 2.0), (-1.0, 2.0, -1.0))  # KB


def hiding_weights(images: Images, distortion: Distortion) -> Tensor:
    """The weight of each pixel in the choice, (batch, pixel); all ones without a map."""
    if distortion == "none":
        return torch.ones_like(images[:, 0]).flatten(1)
    precise = images.to(torch.promote_types(images.dtype, torch.float32))
    hides = 1 - hill_cost(precise) if distortion == "hill" else _scaled(_sigma(precise))
    flat = hides.flatten(1)
    flat = (flat - _percentile(flat, 30)).clamp_min(0)
    high = _percentile(flat, 75)
    flat = torch.where(high > 0, flat / high.where(high > 0, 1), flat.sign()).clamp(0, 1)
    weights = _mean(flat.view_as(hides), 3).flatten(1)
    nowhere = ~(weights > 0).any(dim=1, keepdim=True)  # a flat image hides as well anywhere
    return weights.masked_fill(nowhere, 1).to(images.dtype)


def hill_cost(images: Images) -> Tensor:
    """How much a change would show at each pixel, from 0 to 1, (batch, 1, height, width)."""
    colour = images.new_tensor(_GREY).view(1, 3, 1, 1)
    grey = (
        (images * colour).sum(dim=1, keepdim=True)
        if images.shape[1] == 3
        else images.mean(dim=1, keepdim=True)
    )
    kernel = images.new_tensor(_HIGH_PASS).view(1, 1, 3, 3)
    detail = F.conv2d(F.pad(grey, (1, 1, 1, 1), mode="replicate"), kernel).abs()
    return _scaled(_mean(1 / (_mean(detail, 3) + 1e-10), 15))


def _sigma(images: Images) -> Tensor:
    return sigma_map(images).mean(dim=1, keepdim=True)


def _scaled(values: Tensor) -> Tensor:
    """Each image's values from 0 to 1; 0 where they are all the same."""
    low = values.amin(dim=(1, 2, 3), keepdim=True)
    span = values.amax(dim=(1, 2, 3), keepdim=True) - low
    return (values - low) / span.where(span > 0, 1)


def _mean(values: Tensor, size: int) -> Tensor:
    """The mean over a square around each pixel; beyond the edge of the image there is nothing."""
    return F.avg_pool2d(values, size, 1, size // 2, count_include_pad=False)


def _percentile(values: Tensor, percent: int) -> Tensor:
    """Of each row, as a column; one of its values."""
    rank = round(percent / 100 * (values.shape[1] - 1))
    return values.sort(dim=1).values[:, rank : rank + 1]
