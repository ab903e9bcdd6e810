"""GreedyFool's second stage: put pixels back, the least changed first, and scale what is left.

    candidate(a) = clip(x + a * eps * d / |d|_inf),    d the change without the pixel in question

for a = 0.1, 0.2, ..., 1. The smallest ``a`` that fools is taken, with its scale, and the order is
made anew; where none does, the pixel stays and the next in the order is tried. An image is done
once the last of its pixels was tried, or a single one is left. Ten forward passes a pixel at most.
"""

import torch
from torch import Tensor

from pinprick.parts.box import into_ball
from pinprick.parts.largest import find_largest
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images, Mask

_PIXELS = Units("pixels")
_TENTHS = 10
_AT_ONCE = 5  # scales that are asked about together, for the sake of memory


def reduce_pixels(problem: Problem, adv: Images, eps: float, trials: int) -> Images:
    """Adversarial images with no more pixels; ``trials`` is how many to try to put back."""
    adv = adv.clone()
    rows = torch.arange(len(adv), device=adv.device)  # images with pixels still to be tried
    place = torch.zeros_like(rows)  # how many in the order were tried in vain
    for _ in range(trials):
        count = _PIXELS.count(adv[rows], problem.images[rows])
        left = (place < count) & (count > 1)
        rows, place = rows[left], place[left]
        if not len(rows):
            break
        part = problem[rows]
        delta = _without(adv[rows] - part.images, place, int(count.max()))
        shorter, met = _smallest_scale(part, delta, eps)
        adv[rows[met]] = shorter[met]
        place = place + (~met).long()
    return adv


def _without(delta: Images, place: Tensor, most: int) -> Images:
    """The change without the pixel that comes at ``place`` when the least changed come first."""
    size = _PIXELS.total(delta.abs())
    size = size.masked_fill(size == 0, torch.inf)
    least, _ = find_largest(-size, place + 1, most, above=-torch.inf)
    pixel = least.gather(1, place.unsqueeze(1))
    kept = torch.ones_like(size, dtype=torch.bool).scatter_(1, pixel, False)
    return delta * _PIXELS.spread(kept, delta)


def _smallest_scale(problem: Problem, delta: Images, eps: float) -> tuple[Images, Mask]:
    """The images under the smallest scale of the change that fools, and where there is one."""
    delta = delta / delta.abs().amax(dim=(1, 2, 3), keepdim=True)
    best, found = problem.images.clone(), torch.zeros_like(delta[:, 0, 0, 0], dtype=torch.bool)
    rows = torch.arange(len(delta), device=delta.device)
    for tenths in torch.arange(1, _TENTHS + 1, device=delta.device).split(_AT_ONCE):
        each = rows.repeat_interleave(len(tenths))
        part, scale = problem[each], tenths.to(delta.dtype).repeat(len(rows)) * (eps / _TENTHS)
        tried = into_ball(part.images + scale.view(-1, 1, 1, 1) * delta[each], part.images, eps)
        met = part.goal.met(part.logits(tried)).view(len(rows), len(tenths))
        first = met.long().argmax(dim=1) + torch.arange(len(rows), device=rows.device) * len(tenths)
        some = met.any(dim=1)
        best[rows[some]], found[rows[some]] = tried[first[some]], True
        rows = rows[~some]
        if not len(rows):
            break
    return best, found
