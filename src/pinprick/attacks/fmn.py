"""FMN: gradient steps projected onto a ball whose radius closes in on the boundary.

Pintor, Roli, Brendel, Biggio: Fast minimum-norm adversarial attacks through adaptive norm
constraints. NeurIPS 2021.

    eps   = eps * (1 - gamma), at most |best|_p         where x + d fooled
    eps   = eps * (1 + gamma)                           where it did not, but once did
    eps   = |d|_p + margin / |g|_q                      where it never did; q is dual to p
    d     = clip(project(d - a * g / |g|_2, eps))       clip: x + d stays in [0, 1]

``g`` is the gradient of the margin. With l0 the radius is a number of elements: it begins at 1, is
rounded down, moves by 1 at least, and the projection keeps the elements that changed most. ``a``
falls from ``step_size`` to a hundredth and ``gamma`` to 0.001, along half a cosine. The smallest
``x + d`` that fooled is kept. One forward and one backward pass per step.

With ``unit="pixels"`` the l0 radius is a number of pixels, and the projection keeps the pixels
whose change has the largest l2 norm over the channels. That is the nearest point with so many
changed pixels.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
from pinprick.parts.adam import half_cosine
from pinprick.parts.best import Best
from pinprick.parts.largest import mask_largest
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images, Mask, PerImage

Norm = Literal["l0", "l1", "l2", "linf"]
_LAST_GAMMA = 0.001
_LOOK = 16  # steps between two looks at the largest l0 radius, each of which makes a GPU wait
_DUAL: dict[Norm, Norm] = {"l1": "linf", "l2": "l2", "linf": "l1"}


@dataclass(frozen=True, kw_only=True)
class FMN(Attack):
    """Projected gradient steps in a ball that shrinks while the image fools and grows while not.

    Attributes:
        norm: What is kept small, "l0" (elements or pixels), "l1", "l2" or "linf".
        unit: What l0 counts: "elements" (channel values), as in the paper, or "pixels" (all
            channels of a pixel together). The other norms have no unit.
        steps: Number of gradient steps, ``K``.
        step_size: Euclidean length of the first step, ``alpha_0``, where pixel values run from
            0 to 1.
        gamma: Relative change of the radius in the first step, ``gamma_0``.
    """

    card: ClassVar[Card] = Card(
        name="fmn",
        title="FMN",
        norm="l0",
        unit="elements",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:2102.12827",
        differences=(
            "Until an image fools, its radius is 0.001 longer. Otherwise a linear model leads "
            "onto the boundary and never across.",
            "The radius is at most what the box needs.",
            "Elements outside the mask have no gradient.",
            "The l0 projection keeps exactly `eps` elements, the first of equal ones. "
            "Published code keeps `eps + 1`, or everything at `eps = 0`.",
            "The update is computed in float32 or better.",
            '`unit="pixels"` is ours. It keeps the pixels with the largest l2 norm over the '
            "channels.",
        ),
    )

    norm: Norm = "l0"
    unit: Literal["elements", "pixels"] = "elements"
    steps: int = setting(1000, least=1)
    step_size: float = setting(1.0, above=0)
    gamma: float = setting(0.05, least=_LAST_GAMMA, below=1)

    def __post_init__(self) -> None:
        if self.norm != "l0" and self.unit == "pixels":
            raise BadInput(f"unit=pixels of fmn is for norm=l0, got norm={self.norm}")

    def facts(self) -> Card:
        return replace(
            self.card,
            norm=self.norm,
            unit=self.unit if self.norm == "l0" else None,
            max_forwards=self.steps,
            max_backwards=self.steps,
        )

    def __call__(self, problem: Problem) -> Images:
        best, goal = Best(problem.images), problem.goal
        precise = torch.promote_types(problem.images.dtype, torch.float32)
        clean = problem.images.to(precise)
        channels = clean.shape[1] if self.unit == "pixels" else 1
        adv, widest = clean, self._widest(clean, channels)
        radius, most = torch.ones_like(widest), 1
        for step in range(self.steps):
            asked = adv.to(problem.images.dtype)
            logits, grad = problem.logits_and_gradient(asked, goal.margin)
            slope = grad.to(precise)
            if problem.allowed is not None:
                slope = slope.where(problem.allowed, 0)
            slope, delta = slope.flatten(1), (asked.to(precise) - clean).flatten(1)
            met, length = goal.met(logits), self._size(delta, channels)
            best.offer(asked, length, met)
            if problem.all_refused:
                break

            gamma = _annealed(self.gamma, _LAST_GAMMA, step / self.steps)
            if self.norm == "l0":
                radius = _count(radius, gamma, met, best.cost)
                grown = max(most + 1, math.ceil(most * (1 + gamma)))
                look = step % _LOOK == 0 or radius.is_cpu
                most = int(radius.max()) if look else min(grown, delta.shape[1])
            else:
                gap = goal.margin(logits).to(precise).abs().nan_to_num(0.0)
                ahead = gap / size(slope, _DUAL[self.norm]).clamp_min(1e-12)
                reach = (length + ahead) * (1 + _LAST_GAMMA)
                radius = _radius(radius, gamma, met, best.cost, reach)
            radius = torch.minimum(radius, widest)

            rate = _annealed(self.step_size, self.step_size / 100, step / self.steps)
            steep = size(slope, "l2").clamp_min(1e-12).unsqueeze(1)
            delta = self._project(delta.addcdiv_(slope, steep, value=-rate), radius, most, channels)
            adv = delta.view_as(clean).add_(clean).clamp_(0, 1)  # in place: a profile asked for it
        return best.images

    def _size(self, delta: Tensor, channels: int) -> PerImage:
        """The norm of each change; for l0, the number of changed units of ``channels`` values."""
        if self.norm == "l0" and channels > 1:
            delta = delta.unflatten(1, (channels, -1)).abs().amax(dim=1)
        return size(delta, self.norm)

    def _widest(self, clean: Images, channels: int) -> PerImage:
        """The radius of the smallest ball that holds the box."""
        return self._size(torch.maximum(clean, 1 - clean).flatten(1), channels)

    def _project(self, delta: Tensor, radius: PerImage, most: int, channels: int) -> Tensor:
        if self.norm == "l0":
            return into_l0(delta, radius, most, channels)
        project = {"l1": into_l1, "l2": into_l2, "linf": into_linf}[self.norm]
        return project(delta, radius)


def size(delta: Tensor, norm: Norm) -> PerImage:
    """The norm of each row, which is one change; for l0, the number of entries other than zero."""
    if norm == "l0":
        return delta.sign().abs().sum(dim=1)  # on a CPU much faster than to count booleans
    if norm == "l1":
        return delta.abs().sum(dim=1)
    return delta.square().sum(dim=1).sqrt() if norm == "l2" else delta.abs().amax(dim=1)


def into_l0(delta: Tensor, count: Tensor, most: int, channels: int = 1) -> Tensor:
    """The nearest point with ``count`` entries that are not zero; of equal ones the first are kept.

    With several ``channels``, which follow one another in a row, ``count`` is of pixels. ``most``
    bounds the counts.
    """
    if channels == 1:
        return torch.where(mask_largest(delta.abs(), count, most), delta, 0)
    norms = delta.unflatten(1, (channels, -1)).square().sum(dim=1).sqrt()
    return torch.where(mask_largest(norms, count, most).repeat(1, channels), delta, 0)


def into_l1(delta: Tensor, radius: PerImage) -> Tensor:
    """The nearest point of the l1 ball: all entries move towards zero by the same amount."""
    sizes = delta.abs().sort(dim=1, descending=True).values
    sums = sizes.cumsum(dim=1)
    rank = torch.arange(1, sizes.shape[1] + 1, device=delta.device)
    kept = (sizes * rank > sums - radius.unsqueeze(1)).sum(dim=1, keepdim=True).clamp_min(1)
    drawn = (sums.gather(1, kept - 1) - radius.unsqueeze(1)) / kept
    nearest = delta.sign() * (delta.abs() - drawn).clamp_min(0)
    return torch.where(sums[:, -1:] > radius.unsqueeze(1), nearest, delta)


def into_l2(delta: Tensor, radius: PerImage) -> Tensor:
    """The nearest point of the l2 ball."""
    tiny = torch.finfo(delta.dtype).tiny
    return delta * (radius / size(delta, "l2").clamp_min(tiny)).clamp_max(1).unsqueeze(1)


def into_linf(delta: Tensor, radius: PerImage) -> Tensor:
    """The nearest point of the l-infinity ball."""
    return delta.clamp(-radius.unsqueeze(1), radius.unsqueeze(1))


def _count(radius: PerImage, gamma: float, met: Mask, best: PerImage) -> PerImage:
    """The next number of elements: one fewer at least, or one more."""
    fewer = torch.minimum(radius - 1, (radius * (1 - gamma)).floor())
    more = torch.maximum(radius + 1, (radius * (1 + gamma)).floor())
    return torch.where(met, torch.minimum(fewer, best), more).clamp_min(1)


def _radius(radius: PerImage, gamma: float, met: Mask, best: PerImage, reach: PerImage) -> PerImage:
    """The next radius; ``reach`` is where the boundary lies to first order."""
    outside = torch.where(best.isfinite(), radius * (1 + gamma), reach)
    return torch.where(met, torch.minimum(radius * (1 - gamma), best), outside)


def _annealed(first: float, last: float, done: float) -> float:
    """From ``first`` to ``last`` along half a cosine."""
    return last + (first - last) * half_cosine(done, 1)
