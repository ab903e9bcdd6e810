"""The two searches of HopSkipJump: back to the boundary, and a step away from it.

Both go in lock-step, one question for each image at a time, and give images that were asked about.
``left`` is how many questions each image has, and goes down with every one.
"""

from typing import Literal

import torch

from pinprick.problem import Problem
from pinprick.types import Counts, Images, Mask, PerImage

Norm = Literal["l2", "linf"]


def distance(adv: Images, images: Images, norm: Norm) -> PerImage:
    """How far ``adv`` is from the clean images, in double precision."""
    change = (adv - images).double().flatten(1)
    return change.square().sum(dim=1).sqrt() if norm == "l2" else change.abs().amax(dim=1)


def to_boundary(
    problem: Problem, adv: Images, norm: Norm, halvings: int, left: Counts, go: Mask
) -> Images:
    """The image nearest to the clean one that fools on the way there, by bisection, where ``go``.

    The way is a straight line in l2. In linf it is that of the largest changes cut off: all that
    differ by more than a bound are set to it, and the bound is what falls.
    """
    near, images = adv.clone(), problem.images
    reach = distance(adv, images, norm)
    low, high = torch.zeros_like(reach), torch.ones_like(reach)
    rows = (go & (left > 0)).nonzero().flatten()
    for _ in range(halvings):
        if not len(rows):
            break
        part, middle = problem[rows], (low[rows] + high[rows]) / 2
        tried = _on_the_way(adv[rows], part.images, norm, middle, reach[rows])
        met = part.goal.met(part.logits(tried))
        near[rows[met]] = tried[met]
        low[rows] = torch.where(met, low[rows], middle)
        high[rows] = torch.where(met, middle, high[rows])
        left[rows] -= 1
        rows = rows[(left[rows] > 0) & ~part.refused]
    return near


def leap(
    problem: Problem,
    adv: Images,
    direction: Images,
    size: PerImage,
    halvings: int,
    left: Counts,
    reserve: int,
) -> tuple[Images, Mask]:
    """The first of ever smaller steps along ``direction`` that fools, and where there is one.

    ``reserve`` questions are left over.
    """
    moved, fools = adv.clone(), torch.zeros_like(left, dtype=torch.bool)
    rows, size = (left > reserve).nonzero().flatten(), size.to(adv.dtype).view(-1, 1, 1, 1)
    for halving in range(halvings):
        if not len(rows):
            break
        part = problem[rows]
        tried = (adv[rows] + size[rows] / 2**halving * direction[rows]).clamp(0, 1)
        met = part.goal.met(part.logits(tried))
        moved[rows[met]], fools[rows] = tried[met], met
        left[rows] -= 1
        rows = rows[~met & (left[rows] > reserve) & ~part.refused]
    return moved, fools


def _on_the_way(
    adv: Images, images: Images, norm: Norm, share: PerImage, reach: PerImage
) -> Images:
    """What lies at a share of the way from the clean images to ``adv``."""
    if norm == "linf":
        bound = (share * reach).to(adv.dtype).view(-1, 1, 1, 1)
        return adv.clamp(images - bound, images + bound).clamp(0, 1)
    return (images + share.to(adv.dtype).view(-1, 1, 1, 1) * (adv - images)).clamp(0, 1)
