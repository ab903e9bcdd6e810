"""Which units to change: those with the largest first-order gain, or a random draw by it.

A chosen unit (an open gate) goes to the corner of the box that the gradient points at; the others
keep the clean value. The promise of a unit is its first-order gain, ``sum |v| * room`` over its
values, where ``room`` is the distance to that corner. The k units with the highest promise are
chosen, or k are drawn: adding Gumbel noise to ``log(promise) / temperature`` and taking the k
largest draws k units without replacement, with probabilities proportional to
``promise ** (1 / temperature)`` (Kool, van Hoof, Welling, ICML 2019).
"""

import torch
from torch import Tensor

from pinprick.parts.largest import find_largest, mask_largest
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images

_DRAWN = 4096  # units of the highest promise to draw from, or as many as are to be chosen


def corner(direction: Images, problem: Problem) -> Images:
    """The corner of the box downhill of ``direction``; the clean value where that is zero."""
    images = problem.images
    edge = torch.where(direction == 0, images, (direction < 0).to(images.dtype))
    return edge if problem.allowed is None else torch.where(problem.allowed, edge, images)


def promise(direction: Images, edge: Images, images: Images, units: Units) -> Tensor:
    """The first-order gain of moving each unit to ``edge``; never below zero."""
    return units.total(direction * (images - edge))


def draw_noise(
    problem: Problem, units: int, temperature: float | Tensor, step: int | Tensor, use: str
) -> Tensor:
    """Factors that turn the k largest promises into a draw at ``temperature``."""
    uniform = problem.rng.uniform(units, step=step, use=use)
    return noise_of(uniform, temperature, problem.images.dtype)


def noise_of(uniform: Tensor, temperature: float | Tensor, dtype: torch.dtype) -> Tensor:
    """The same factors from numbers in [0, 1)."""
    uniform = uniform.to(torch.promote_types(dtype, torch.float32))
    minus_gumbel = (-(uniform + 2**-25).log()).log()
    noise = (-temperature * minus_gumbel).exp()
    return noise.clamp(max=torch.finfo(dtype).max).to(dtype)  # 0 times infinity is NaN


def draw_largest(
    problem: Problem,
    scores: Tensor,
    count: Tensor,
    most: int,
    *,
    temperature: float | Tensor,
    step: int | Tensor,
    use: str,
) -> Tensor:
    """Like ``mask_largest``, but drawn at ``temperature`` among the most promising.

    A temperature per image has the shape (batch, 1).

    Among all of 150,528 units, the noise would put a thousand poor ones above the best.
    """
    if not isinstance(temperature, Tensor) and temperature == 0:
        return mask_largest(scores, count, most)
    number = scores.shape[1]
    if number <= _DRAWN:
        noise = draw_noise(problem, number, temperature, step, use)
        return mask_largest(scores * noise, count, most)
    among = min(max(_DRAWN, most), number)
    places, inside = find_largest(scores, count.clamp_min(_DRAWN), among)
    values = scores.gather(1, places).where(inside, 0)
    gates = mask_largest(values * draw_noise(problem, among, temperature, step, use), count, most)
    return torch.zeros_like(scores, dtype=torch.bool).scatter_(1, places, gates)


def scaled(gradient: Images) -> Images:
    """Each image's gradient divided by its largest absolute value."""
    largest = gradient.abs().flatten(1).amax(dim=1).view(-1, 1, 1, 1)
    return gradient / torch.where(largest > 0, largest, 1)
