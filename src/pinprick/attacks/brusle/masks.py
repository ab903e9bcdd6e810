"""Which pixels BruSLeAttack copies, and what its swaps have taught it about each.

All that is said of pixels has the shape (batch, pixel).
"""

import math

import torch
from torch import Tensor

from pinprick.parts.box import keep_allowed
from pinprick.parts.subsets import draw_subset, draw_times
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Counts, Images, Mask, PerImage, Rows

PIXELS = Units("pixels")
_POWER, _BASE = 0.24, 0.997  # m1 and m2 of the paper, how the swaps shrink
_PRIOR = 0.01  # of fails and visits
_FIRST = 1e9  # the weight of pixels that come before all others


def share(query: int, swap: float) -> float:
    """The share of the pixels to swap once so many queries were made, lambda in the paper."""
    return swap * (math.pow(query + 1, -_POWER) + math.pow(_BASE, query + 1)) / 2


def synthetic(problem: Problem) -> Images:
    """Pure colours, 0 or 1 in every channel; the clean values where nothing may change.

    Pixels that a start changed have the colours they have there.
    """
    images = problem.images
    colours = problem.rng.integers(2, *images.shape[1:], step=0, use="brusle colours")
    pure = keep_allowed(colours.to(images.dtype), images, problem.allowed)
    begun = PIXELS.spread(PIXELS.changed(problem.begin, images), images)
    return torch.where(begun, problem.begin, pure)


class Masks:
    """A mask of pixels for each image, the best so far, and proposals to better it.

    Attributes:
        count: How many pixels are copied: k, or as many as differ, where those are fewer.
        alone: Where a single mask is all there is to try.
        best: The best masks so far; ``loss`` is theirs.
        fails, visits: How often each pixel was left out in vain, and how often it was tried at all.

    Args:
        problem: The images.
        k: How many pixels may be copied.
        near: What the random masks are parts of, where it differs from the clean image; where that
            is in fewer than k pixels, the first mask is all of these, and the others more.
    """

    def __init__(self, problem: Problem, k: Counts, near: Images) -> None:
        images = problem.images
        precise = torch.promote_types(images.dtype, torch.float32)
        self._colours = synthetic(problem)
        difference = (self._colours.to(precise) - images.to(precise)).abs()
        self._apart = (PIXELS.total(difference) / images.shape[1]).float()
        useful, known = self._apart > 0, PIXELS.changed(near, images)
        self._known = (known & useful).float()
        few = known.sum(dim=1, keepdim=True) < k.unsqueeze(1)
        self._origin = torch.where(few, _FIRST * self._known + useful, self._known)
        self._spare = (useful.sum(dim=1) - k).clamp_min(0)
        self.count: Counts = torch.minimum(k, useful.sum(dim=1))
        self.alone: Mask = self._spare == 0
        self.best = torch.zeros_like(useful)
        self.loss: PerImage = torch.full_like(k, torch.inf, dtype=precise)
        self.fails, self.visits = torch.zeros_like(self._apart), torch.zeros_like(self._apart)

    def __getitem__(self, rows: Rows) -> "Masks":
        cut = object.__new__(Masks)
        cut.__dict__.update({name: value[rows] for name, value in self.__dict__.items()})
        return cut

    def start(self, problem: Problem, most: int, step: int, *, first: bool = False) -> Tensor:
        """Random masks; ``most`` bounds the counts."""
        times = self._times(problem, step)
        origin = self._origin
        if first:
            origin = torch.where(self._known.any(dim=1, keepdim=True), self._known, origin)
        return draw_subset(origin, times, self.count, most)

    def swap(self, problem: Problem, most: int, step: int, part: float) -> Tensor:
        """The best masks with a part of their pixels left out and as many others taken in."""
        theta = (self.fails + _PRIOR) / (self.visits + _PRIOR)
        swapped = torch.minimum((self.count * part).long().clamp_min(1), self._spare)
        times = self._times(problem, step)  # one for both draws, which share no pixel
        weights = torch.stack((theta * self.best, theta * self._apart * ~self.best), dim=1)
        count = torch.stack((self.count - swapped, swapped), dim=1)
        return draw_subset(weights, times.unsqueeze(1), count, most).any(dim=1)

    def learn(self, tried: Tensor, loss: PerImage, *, swapped: bool) -> None:
        """Take the masks that did better; where they did not, the pixels they left out matter."""
        better = take = loss < self.loss
        if swapped:
            left_out = self.best & ~tried
            self.fails = self.fails + (left_out & ~better.unsqueeze(1))
            self.visits = self.visits + left_out
        else:
            take = better | ~self.best.any(dim=1)  # the first, whatever it is worth
        self.visits = self.visits + tried
        self.best = torch.where(take.unsqueeze(1), tried, self.best)
        self.loss = torch.where(better, loss.to(self.loss.dtype), self.loss)

    def made(self, pixels: Tensor, images: Images) -> Images:
        """The clean images with some pixels copied."""
        return torch.where(PIXELS.spread(pixels, images), self._colours, images)

    def made_best(self, images: Images) -> Images:
        """Those of the best masks; the clean ones where no mask has a loss."""
        judged = (self.loss < torch.inf).unsqueeze(1)
        return self.made(self.best & judged, images)

    def _times(self, problem: Problem, step: int) -> Tensor:
        return draw_times(problem.rng, self._apart.shape[1], step=step, use="brusle masks")
