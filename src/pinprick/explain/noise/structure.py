"""How a change is laid out: clusters, windows, and its overlap with an adversarial saliency map.

These are the measures by which structured attacks are compared (Xu et al. 2019, Sadiku et al.
2025). A cluster is a set of changed pixels that touch along their sides. A window is a square of
8 x 8 pixels, at any position; it counts if it holds a changed pixel. Fewer clusters and fewer
windows mean a change in fewer places.

The saliency map has a value per element of the clean image. With ``z_y`` and ``z_t`` the logits of
the true class and of the rival,

    map     = dz_t/dx * |dz_y/dx|
    overlap = |B d|_2 / |d|_2         B_i = 1 where map_i is above the 90th percentile, else 0

The percentile is over elements where the map is not zero. An overlap of 1 means that only such
elements changed. A change that is equally large everywhere has an overlap of 0.32.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pinprick.explain.noise.groups import connected_groups
from pinprick.parts.units import WINDOW, count_windows
from pinprick.problem import Problem
from pinprick.types import Counts, Images, Labels, PerImage

_PERCENTILE = 0.9


@dataclass(frozen=True)
class Structure:
    """The layout of the changes of a batch.

    Attributes:
        clusters: Number of clusters of changed pixels.
        windows: Number of windows that hold a changed pixel.
        saliency_overlap: Overlap with the saliency map; NaN without gradients, or where the map is
            zero.
    """

    clusters: Counts
    windows: Counts
    saliency_overlap: PerImage


def measure_structure(
    problem: Problem, adversarial: Images, rivals: Labels, *, saliency: bool, block: int
) -> Structure:
    """The layout of each change.

    The saliency map takes one forward and two backward passes per image.

    Args:
        problem: The clean images.
        adversarial: The changed images.
        rivals: The class that each change leads to.
        saliency: Whether to compare with the saliency map.
        block: Images per forward pass.
    """
    changed = (adversarial != problem.images).any(dim=1)
    overlap = torch.full(changed.shape[:1], torch.nan, dtype=torch.double, device=changed.device)
    if saliency:
        delta = adversarial.double() - problem.images.double()
        rows = torch.arange(len(problem), device=changed.device).split(block)
        maps = torch.cat([saliency_map(problem[some], rivals[some]) for some in rows])
        overlap = saliency_overlap(maps, delta)
    return Structure(
        clusters=connected_groups(changed, radius=0, corners=False).count,
        windows=count_windows(changed, WINDOW).long(),
        saliency_overlap=overlap,
    )


def saliency_map(problem: Problem, rivals: Labels) -> Tensor:
    """One value per element of each clean image."""
    classes = torch.stack([rivals, problem.goal.labels], dim=1)
    _, slopes = problem.logits_and_gradients(
        problem.images, lambda logits: logits.gather(1, classes)
    )
    towards, away = slopes
    return towards.double() * away.double().abs()


def saliency_overlap(maps: Tensor, delta: Tensor) -> PerImage:
    """The share of the l2 norm of each change on elements above the percentile of its map."""
    values, change = maps.flatten(1), delta.flatten(1)
    known = values != 0
    ranked = torch.where(known, values, torch.inf).sort(dim=1).values
    rank = (_PERCENTILE * (known.sum(dim=1) + 1)).ceil().long()
    beyond = rank > known.sum(dim=1)  # no element is above the percentile
    above = ranked.gather(1, (rank - 1).clamp_max(values.shape[1] - 1).unsqueeze(1))
    marked = (values > above) & ~beyond.unsqueeze(1)
    overlap = _length(change.where(marked, 0)) / _length(change)
    return overlap.masked_fill(~known.any(dim=1), torch.nan)


def _length(change: Tensor) -> PerImage:
    return change.square().sum(dim=1).sqrt()
