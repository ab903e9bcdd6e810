"""Gates: which units of an image are open, and what an open one is worth.

An open gate lets its unit go all the way to the corner of the box that a gradient points at; a
shut one leaves the clean value. The promise of a unit is what opening it should bring to first
order, ``sum |v| * room`` over its values, where ``room`` is the distance to that corner. The k
gates of highest promise are opened, or k are drawn: adding Gumbel noise to ``log(promise) /
temperature`` and taking the k largest draws k units without replacement, with probabilities in
proportion to ``promise ** (1 / temperature)`` (Kool, van Hoof, Welling, ICML 2019).
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick.parts.largest import find_largest, open_largest
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images

_GRID = 4  # nodes of a smooth field along each side of the image
_DRAWN = 4096  # a draw is among so many of the most promising, or as many as are to be opened


def corner(direction: Images, problem: Problem) -> Images:
    """The corner of the box downhill of ``direction``; where that is zero, nothing moves."""
    images = problem.images
    edge = torch.where(direction == 0, images, (direction < 0).to(images.dtype))
    return edge if problem.allowed is None else torch.where(problem.allowed, edge, images)


def promise(direction: Images, edge: Images, images: Images, units: Units) -> Tensor:
    """What moving each unit to ``edge`` should bring, to first order; never below zero."""
    return units.total(direction * (images - edge))


def draw_noise(problem: Problem, units: int, temperature: float, step: int, use: str) -> Tensor:
    """Factors that turn the k largest promises into a draw at ``temperature``."""
    dtype = problem.images.dtype
    precise = torch.promote_types(dtype, torch.float32)
    uniform = problem.rng.uniform(units, step=step, use=use).to(precise)
    minus_gumbel = (-(uniform + 2**-25).log()).log()
    noise = (-temperature * minus_gumbel).exp()
    return noise.clamp(max=torch.finfo(dtype).max).to(dtype)  # 0 times infinity is no number


def draw_largest(
    problem: Problem,
    scores: Tensor,
    count: Tensor,
    most: int,
    *,
    temperature: float,
    step: int,
    use: str,
) -> Tensor:
    """Like ``open_largest``, but drawn at ``temperature`` among the most promising.

    Of 150,528 units the noise would lift a thousand poor ones above the best.
    """
    if temperature == 0:
        return open_largest(scores, count, most)
    number = scores.shape[1]
    if number <= _DRAWN:
        noise = draw_noise(problem, number, temperature, step, use)
        return open_largest(scores * noise, count, most)
    among = min(max(_DRAWN, most), number)
    places, inside = find_largest(scores, count.clamp_min(_DRAWN), among)
    values = scores.gather(1, places).where(inside, 0)
    gates = open_largest(values * draw_noise(problem, among, temperature, step, use), count, most)
    return torch.zeros_like(scores, dtype=torch.bool).scatter_(1, places, gates)


def favoured_regions(problem: Problem, units: Units, use: str) -> Tensor:
    """A smooth random field over each channel, standard normal on a coarse grid, for each unit.

    Units that lie together often do more together than their promises say (a stroke, an edge).
    Noise of its own for each unit scatters the gates; a field keeps them together.
    """
    images = problem.images
    channels = images.shape[1] if units.unit == "elements" else 1
    coarse = problem.rng.normal(channels, _GRID, _GRID, step=0, use=f"{use}, regions")
    size = (images.shape[2], images.shape[3])
    smooth = F.interpolate(coarse.to(images.dtype), size, mode="bilinear", align_corners=True)
    return smooth.flatten(1)


def scaled(gradient: Images) -> Images:
    """Each image's gradient over its largest entry, so that all images weigh alike."""
    largest = gradient.abs().flatten(1).amax(dim=1).view(-1, 1, 1, 1)
    return gradient / torch.where(largest > 0, largest, 1)
