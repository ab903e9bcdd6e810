"""Brendel & Bethge, l0: along the boundary, each step to the fewest changes within a trust region.

Brendel, Rauber, Kümmerer, Ustyuzhaninov, Bethge: Accurate, reliable and fast robustness evaluation.
NeurIPS 2019.

    g   = momentum * g + (1 - momentum) * grad margin(x_t)
    s   = argmin |x_t + s - x|_0   where   g s <= c,   |s|_2 <= r,   x_t + s in the box
    x_t = x_t + s

from an image ``x_1`` that fools. ``c`` leads a tenth beyond the boundary, to first order: it is
``-1.1 margin`` where ``x_t`` does not fool, and ``-0.9 margin`` where it does. The radius ``r`` is
halved twenty times on the way. The sparsest ``x_t`` that fooled is kept. ``boundary_step`` solves
for ``s`` without queries.

``x_1`` is the problem's start where that fools. Otherwise signed gradient steps lead from it, or
from the clean image, to one that does. One forward and one backward pass per step of either kind.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.parts.best import Best
from pinprick.parts.box import keep_allowed
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.types import Images, Mask, PerImage

_PULLS, _PULL_HALVINGS = (1e-4, 1e7), 10  # a logarithmic bracket, and how often it is halved
_PRICES, _PRICE_HALVINGS = (1e-6, 1e4), 10  # the lower end is in units of the squared radius
_LAST_HALVINGS = 16


@dataclass(frozen=True, kw_only=True)
class BrendelBethge(Attack):
    """Steps along the boundary, each the sparsest change that a shrinking trust region allows.

    Attributes:
        steps: Number of steps.
        radius: First radius of the trust region, as a share of the diagonal of the box.
        decay: Factor of the radius at each decay.
        decays: Number of decays, at equal intervals.
        overshoot: How far a step leads across the boundary: 1 is onto it, 1.1 a tenth beyond.
        momentum: Weight of the gradients before in the direction of a step.
        start_step: Length of the signed steps before an image first fools, where pixel values run
            from 0 to 1.
        unit: What is counted: "elements" (channel values), as in the paper, or "pixels" (all
            channels of a pixel together).
    """

    card: ClassVar[Card] = Card(
        name="brendel_bethge",
        title="Brendel & Bethge",
        norm="l0",
        unit="elements",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        starts=True,
        paper="arXiv:1907.01003",
        differences=(
            "Without a given start, signed gradient steps find one, for targets too. Foolbox "
            "draws noise and bisects to the boundary.",
            "The first radius is a share of the box's diagonal. Foolbox multiplies it by the "
            "elements of the batch, so its results depend on the batch size.",
            "The linearised margin is an upper bound. A step may go farther beyond the "
            "boundary if that needs no more changes.",
            "Two nested bisections of the Lagrangian give the step. Foolbox uses a closed form "
            "or the Nelder-Mead method.",
            "Every element that differs counts as changed. Foolbox ignores changes up to 1e-4.",
            '`unit="pixels"` is ours.',
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"quick": {"steps": 200}}

    steps: int = setting(1000, least=1)
    radius: float = setting(1.0, above=0)
    decay: float = setting(0.5, above=0, most=1)
    decays: int = setting(20, least=0)
    overshoot: float = setting(1.1, least=1, below=2)
    momentum: float = setting(0.8, least=0, below=1)
    start_step: float = pixel_distance(0.1)
    unit: Literal["elements", "pixels"] = "elements"

    def facts(self) -> Card:
        return replace(self.card, unit=self.unit, max_forwards=self.steps, max_backwards=self.steps)

    def __call__(self, problem: Problem) -> Images:
        images, goal, units = problem.images, problem.goal, Units(self.unit)
        best, adv = Best(images), keep_allowed(problem.begin, images, problem.allowed)
        precise = torch.promote_types(images.dtype, torch.float32)
        clean, slope = images.to(precise), torch.zeros_like(images, dtype=precise)
        walks = torch.zeros_like(best.cost, dtype=torch.bool)  # which images have fooled
        for step in range(self.steps):
            logits, grad = problem.logits_and_gradient(adv, goal.margin)
            met, first = goal.met(logits), ~walks
            best.offer(adv, units.count(adv, images), met)
            walks = walks | met
            if problem.all_refused:
                break
            grad = keep_allowed(grad.to(precise), torch.zeros_like(slope), problem.allowed)
            mixed = self.momentum * slope + (1 - self.momentum) * grad
            slope = torch.where(_wide(first), grad, mixed)
            margin = goal.margin(logits).to(precise).nan_to_num(0.0)
            room = -torch.where(margin < 0, 2 - self.overshoot, self.overshoot) * margin
            shrunk = self.decay ** (step * self.decays // self.steps)
            radius = torch.full_like(room, self.radius * math.sqrt(clean[0].numel()) * shrunk)
            point = adv.to(precise)
            stay, move = boundary_step(slope, point, clean, room, radius, units)
            walked = torch.where(stay, (point + move).clamp(0, 1).to(adv.dtype), images)
            signed = (point - self.start_step * grad.sign()).clamp(0, 1).to(adv.dtype)
            adv = torch.where(_wide(walks), walked, signed)
        return best.images


def boundary_step(
    slope: Tensor, point: Tensor, clean: Tensor, room: PerImage, radius: PerImage, units: Units
) -> tuple[Tensor, Tensor]:
    """The step to the fewest changed units where the linear margin rises by at most ``room``.

    Restored units move by ``back = clean - point``. The others move by ``s = clip(-pull g / 2)``,
    with ``g`` the slope divided by its length. A unit is restored unless that costs more than a
    price:

        sum over the unit of   pull g back + back^2 - (pull g s + s^2)   >   price

    These are the minimisers of the Lagrangian. For each price the pull that leaves the margin its
    room is found by bisection, and so is the largest price at which the step is within the radius.

    Returns where units stay changed, and the step.
    """
    length = slope.flatten(1).square().sum(dim=1).sqrt().clamp_min(1e-20)
    slope, room = slope / _wide(length), room / length
    back, low, high = clean - point, -point, 1 - point

    def move(pull: PerImage) -> Tensor:
        return (slope * _wide(-pull / 2)).clamp(low, high)

    def choose(pull: PerImage, price: PerImage) -> tuple[Tensor, Tensor]:
        step = move(pull)
        gain = (back - step) * (_wide(pull) * slope + back + step)
        stay = units.spread(units.total(gain) > price.unsqueeze(1), clean)
        return stay, torch.where(stay, step, back)

    def rise(step: Tensor) -> PerImage:
        return (slope * step).flatten(1).sum(dim=1)

    def size(step: Tensor) -> PerImage:
        return step.flatten(1).square().sum(dim=1).sqrt()

    def least_pull(reached: Callable[[PerImage], Mask], halvings: int) -> PerImage:
        none = torch.zeros_like(room)
        most = _bisect(none + _PULLS[0], none + _PULLS[1], reached, halvings)[1]
        return torch.where(reached(none), none, most)

    def at(price: PerImage) -> tuple[Tensor, Tensor]:
        def enough(pull: PerImage) -> Mask:
            return rise(choose(pull, price)[1]) <= room

        return choose(least_pull(enough, _PULL_HALVINGS), price)

    def too_far(price: PerImage) -> Mask:
        return size(at(price)[1]) > radius

    least, most = _PRICES[0] * radius.square(), torch.full_like(room, _PRICES[1])
    stay, _ = at(_bisect(least, most, too_far, _PRICE_HALVINGS)[0])

    def enough(pull: PerImage) -> Mask:
        step = torch.where(stay, move(pull), back)
        return (rise(step) <= room) | (size(step) > radius)

    return stay, move(least_pull(enough, _LAST_HALVINGS))


def _bisect(
    low: PerImage, high: PerImage, reached: Callable[[PerImage], Mask], halvings: int
) -> tuple[PerImage, PerImage]:
    """A narrow bracket, in which ``reached`` turns from false to true."""
    for _ in range(halvings):
        middle = (low * high).sqrt()
        found = reached(middle)
        low, high = low.where(found, middle), high.where(~found, middle)
    return low, high


def _wide(values: PerImage | Mask) -> Tensor:
    return values.view(-1, 1, 1, 1)
