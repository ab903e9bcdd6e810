"""GSE: few groups of neighbouring pixels, by proximal steps whose weights fall near changed pixels.

Sadiku, Wagner, Pokutta: GSE: group-wise sparse and explainable adversarial attacks. ICLR 2025.

    minimise   margin(f(x + d)) + mu * |d|_2^2 + sum_i lam_i * |d_i|^(1/2)

within the box. In the first ``freeze_after`` steps every pixel has a weight of its own:

    p    = prox(d - s * grad),   prox(v) = argmin_u |u - v|^2 + s * lam * |u|^(1/2)
    d    = clip((t / t') p + (1 - t / t') p_before),   t' = (1 + sqrt(1 + 4 t^2)) / 2
    lam  = lam / (1 + blur(changed))  where the blur is above zero, else lam / q

``blur`` is a Gaussian over the map of changed pixels. So weights fall in and around changed pixels,
and rise elsewhere. Then pixels whose weight has risen are restored for good, and the others descend
by the same steps without ``prox``. A search ends for an image once it fools.

The first ``lam`` of all pixels is ``first_weight`` times the largest at which the first step does
anything. It is doubled while searches work. After one that fails, the next is a tenth of the way up
from the largest that worked; then the bracket is bisected. One forward and one backward pass per
step.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.batch_rows import BatchRows
from pinprick.parts.best import Best
from pinprick.parts.box import keep_allowed
from pinprick.parts.units import WINDOW, Units, count_windows
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images, Labels, Mask, PerImage

Marked = Bool[Tensor, "batch 1 height width"]
PixelWeights = Float[Tensor, "batch 1 height width"]

_EDGE = math.sqrt(27 / 32)  # values up to (this * weight)^(2/3) shrink to zero
_NEWTON_STEPS = 6  # from the start that is used, five reach double precision
_BACK = 0.1  # how far above the largest weight that works the next is, after one that fails


@dataclass(frozen=True, kw_only=True)
class GSE(Attack):
    """Proximal steps of the half-quasinorm, its weight lowered around changed pixels.

    Attributes:
        steps: Steps per search at most.
        searches: Weights that are tried per image.
        freeze_after: Steps of a search after which no further pixel may change, ``k_hat``. The
            authors have 30 at CIFAR-10, and 50 for targets and at ImageNet.
        step_size: Length of a step, ``s``, where pixel values run from 0 to 1.
        mu: Weight of the squared distance, where pixel values run from 0 to 1.
        q: Weights of pixels farther from all changed ones are divided by this in every step.
        reach: How far the blur reaches, in pixels; 2 is a square of 5 x 5.
        blur_sigma: Standard deviation of the blur, in pixels.
        first_weight: The first weight, as a share of the largest that changes anything.
        growth: Factor of the weight while all searches of an image fool.
        stretch: Factor for an image that has not fooled yet: its steps become so many times longer
            and ``mu`` so many times smaller after each search. With 1 the weight is divided by ten,
            as in the authors' code.
        keep: What decides which image that fooled is returned. "windows" is the fewest changed
            windows of 8 x 8 pixels, as in the authors' code, "pixels" the fewest pixels.
    """

    card: ClassVar[Card] = Card(
        name="gse",
        title="GSE",
        norm="l0",
        unit="pixels",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:2311.17434",
        differences=(
            "Each step has one forward pass, which also tests the image. The authors' code has "
            "two. All searches share the clean gradient.",
            "The first weight has a closed form. The authors bisect for it.",
            "Newton's method finds the root of the proximal step and rounds alike in every "
            "batch. The authors use the trigonometric form.",
            "Settings are for pixel values from 0 to 1. The authors' are for -1 to 1: a step 4 "
            "times as long, and a quarter of `mu`.",
            "`stretch` is ours: an image that never fooled gets longer steps and a smaller "
            "`mu` after each search. The authors' code takes ten times longer steps in the "
            "last two searches.",
            "Of images with equally few windows, the one with the fewest pixels is kept. The "
            "authors keep the first.",
            '`keep="pixels"` is ours.',
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"steps": 100, "growth": 4.0},
        "imagenet": {"step_size": 0.0125, "mu": 0.4, "freeze_after": 50, "q": 0.9},
    }

    steps: int = setting(200, least=1)
    searches: int = setting(10, least=1)
    freeze_after: int = setting(30, least=1)
    step_size: float = setting(0.00125, above=0)
    mu: float = setting(4.0, least=0)
    q: float = setting(0.25, above=0, most=1)
    reach: int = setting(2, least=0)
    blur_sigma: float = setting(1.5, above=0)
    first_weight: float = setting(0.01, above=0, most=1)
    growth: float = setting(2.0, above=1)
    stretch: float = setting(4.0, least=1)
    keep: Literal["windows", "pixels"] = "windows"

    def facts(self) -> Card:
        passes = self.searches * self.steps
        return replace(self.card, max_forwards=1 + passes, max_backwards=1 + passes)

    def __call__(self, problem: Problem) -> Images:
        best, images = Best(problem.images), problem.images
        grad = self._gradient(problem, images)[1]
        push = self.step_size * grad.abs().flatten(1).amax(dim=1)
        largest = push * push.sqrt() / (_EDGE * self.step_size)
        weight = self.first_weight * largest
        works, fails = torch.zeros_like(weight), torch.full_like(weight, torch.inf)
        stretch = torch.ones_like(weight)
        again = math.sqrt(self.stretch) if self.stretch > 1 else _BACK  # the same share, or less
        for _ in range(self.searches):
            if problem.all_refused:
                break
            worked = self._search(problem, grad, weight, stretch, best)
            works = works.where(~worked, weight)
            never = works == 0
            fails = fails.where(worked | never, weight)
            grown = torch.where(fails.isinf(), self.growth * weight, (weight + fails) / 2)
            back = works + _BACK * (weight - works)
            weight = torch.where(worked, grown, back.where(~never, again * weight))
            stretch = torch.where(never, self.stretch * stretch, stretch)
        return best.images

    def _search(
        self, problem: Problem, grad: Tensor, weight: PerImage, stretch: PerImage, best: Best
    ) -> Mask:
        """One search with a first weight per image; returns which images fooled."""
        rows = torch.arange(len(problem), device=grad.device)
        fooled = torch.zeros_like(weight, dtype=torch.bool)
        walk = _Walk(problem, grad, weight, stretch)
        for step in range(self.steps):
            if step == self.freeze_after:
                walk.freeze()
            adv = walk.step(self)
            met, walk.grad = self._gradient(walk.problem, adv)
            if met.any():
                best.offer(adv, self._cost(adv, walk.problem.images), met, rows)
                fooled[rows[met]] = True
                rows, walk = rows[~met], walk[~met]
            if not len(rows) or walk.problem.all_refused:
                break
        return fooled

    def _gradient(self, problem: Problem, adv: Images) -> tuple[Mask, Tensor]:
        """Whether the images fool, and the gradient of the margin where values may change."""
        logits, grad = problem.logits_and_gradient(adv, problem.goal.margin)
        grad = grad.to(torch.promote_types(grad.dtype, torch.float32))
        grad = keep_allowed(grad, torch.zeros_like(grad), problem.allowed)
        return problem.goal.met(logits), grad

    def _cost(self, adv: Images, images: Images) -> PerImage:
        pixels = Units("pixels").count(adv, images)
        if self.keep == "pixels":
            return pixels
        changed = (adv != images).any(dim=1)
        return count_windows(changed, WINDOW).double() + pixels / (changed[0].numel() + 1)


class _Walk(BatchRows):
    """The state of one search, with a row per image.

    Attributes:
        problem: The images.
        grad: The gradient of the margin at the change so far.

    Args:
        problem: As above.
        grad: The gradient at the clean images.
        weight: The first weight of each image.
        stretch: How many times longer than usual its steps are.
    """

    def __init__(self, problem: Problem, grad: Tensor, weight: PerImage, stretch: PerImage) -> None:
        self.problem, self.grad = problem, grad
        self._change = self._before = torch.zeros_like(grad)
        self._first, self._stretch = (each.view(-1, 1, 1, 1) for each in (weight, stretch))
        self._weights = self._first.expand(-1, 1, *grad.shape[2:])
        self._frozen: Tensor | None = None
        self._pace = 1.0

    def step(self, attack: GSE) -> Images:
        """Make one step; returns the changed images."""
        images, size = self.problem.images, attack.step_size * self._stretch
        drawn = 2 * attack.mu / self._stretch * self._change
        moved = self._change - size * (self.grad + drawn)
        if self._frozen is None:
            moved = shrink(moved, size * self._weights)
        else:
            moved = moved.masked_fill(self._frozen, 0)
        pace = (1 + math.sqrt(1 + 4 * self._pace**2)) / 2
        share, self._pace = self._pace / pace, pace
        change, self._before = share * moved + (1 - share) * self._before, moved
        if self._frozen is None:
            near = blur((change != 0).any(dim=1, keepdim=True), attack.reach, attack.blur_sigma)
            self._weights = self._weights / torch.where(near > 0, 1 + near, attack.q)
        precise = images.to(change.dtype)
        adv = torch.where(change == 0, images, (precise + change).clamp(0, 1).to(images.dtype))
        self._change = adv.to(change.dtype) - precise
        return adv

    def freeze(self) -> None:
        """Restore the pixels whose weight has risen, for the rest of the search."""
        self._frozen = (self._weights > self._first).expand_as(self._change)
        self._change = self._before = self._change.masked_fill(self._frozen, 0)


def shrink(values: Tensor, weights: Tensor) -> Tensor:
    """The ``u`` of least ``(u - v)^2 + weight * |u|^(1/2)`` for each value ``v``.

    It is 0 up to a threshold. Above, ``s = |u|^(1/2)`` is the largest root of ``s^3 - |v| s +
    weight / 4``, and Newton's method comes down to it from ``|v|^(1/2)``.
    """
    size = values.abs()
    root = start = size.sqrt()
    for _ in range(_NEWTON_STEPS):
        root = root - (root * (root.square() - size) + weights / 4) / (3 * root.square() - size)
    return torch.where(size * start > _EDGE * weights, values.sign() * root.square(), 0)


def blur(marked: Marked, reach: int, sigma: float) -> PixelWeights:
    """A Gaussian blur of marked pixels, the image mirrored at its edges.

    Sums are in a fixed order, so that an image gets the same in any batch.
    """
    offsets = range(-reach, reach + 1)
    heights = [math.exp(-0.5 * (offset / sigma) ** 2) for offset in offsets]
    blurred = marked.float()
    for dim in (2, 3):
        pixel = torch.arange(marked.shape[dim], device=marked.device)
        total = torch.zeros_like(blurred)
        for height, offset in zip(heights, offsets, strict=True):
            shifted = blurred.index_select(dim, _mirrored(pixel + offset, len(pixel)))
            total += height / sum(heights) * shifted
        blurred = total
    return blurred


def _mirrored(index: Labels, side: int) -> Labels:
    """Indices beyond the edges of the image, reflected into it."""
    period = max(1, 2 * (side - 1))
    index = index % period
    return torch.minimum(index, period - index) if side > 1 else torch.zeros_like(index)
