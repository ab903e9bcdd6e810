"""σ-zero: Adam on a smooth count of the changed elements, with a threshold that finds its level.

Cinà, Villani, Pintor, Schönherr, Biggio, Pelillo: σ-zero: gradient-based optimization of l0-norm
adversarial examples. ICLR 2025.

    L(d)    = max(margin(f(x + d)), 0) + (1/D) sum_i d_i^2 / (d_i^2 + sigma)
    g       = grad L / |grad L|_inf
    d       = clip(Adam(d, g, lr))                  clip: x + d stays in [0, 1]
    tau     = tau + rate * lr where x + d fooled, tau - rate * lr where it did not, in [0, 1]
    d_i     = 0 where |d_i| < tau

``lr`` falls from its first value to a tenth along half a cosine. The sparsest ``x + d`` that met
the goal is kept. One forward and one backward pass per step.

With ``unit="pixels"``, ``i`` runs over the pixels, ``D`` is their number, and ``|d_i|`` is the l2
norm over the channels of a pixel. A pixel below ``tau`` is put back with all its channels.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from pinprick.attacks.card import Attack, Card
from pinprick.goal import Goal
from pinprick.parts.adam import Adam, falling_rate
from pinprick.parts.best import Best
from pinprick.parts.box import keep_allowed
from pinprick.parts.units import Units, smooth_l0_slope
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images, Logits, PerImage


@dataclass(frozen=True, kw_only=True)
class SigmaZero(Attack):
    """Adam on a smooth l0 norm; changes below an adaptive threshold are undone.

    Attributes:
        steps: Number of gradient steps; the paper has 1000, its quick form 100.
        lr: Adam's first learning rate, ``eta_0``, where pixel values run from 0 to 1.
        sigma: How smooth the count is; smaller is sharper.
        threshold: The first ``tau``, where pixel values run from 0 to 1.
        threshold_rate: How far ``tau`` moves in a step, ``t``, as a share of the learning rate.
        unit: What is counted: "elements" (channel values), as in the paper, or "pixels" (all
            channels of a pixel together).
        stop_at: Stop an image once it needs at most this many units; None to go on.
    """

    card: ClassVar[Card] = Card(
        name="sigma_zero",
        title="σ-zero",
        norm="l0",
        unit="elements",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:2402.01879",
        differences=(
            "Targets use the margin of the goal. The published code refuses them.",
            "Elements outside the mask have no gradient, and do not count in its norm.",
            "The update is computed in float32 or better.",
            "The learning rate follows the authors' code. In adv-lib it is one step late.",
            '`unit="pixels"` is ours. The smooth count and the threshold use the l2 norm of each '
            "pixel over its channels.",
            "`stop_at` is ours.",
        ),
    )

    steps: int = setting(1000, least=1)
    lr: float = setting(1.0, above=0)
    sigma: float = setting(1e-3, above=0)
    threshold: float = setting(0.3, least=0, most=1)
    threshold_rate: float = setting(0.01, least=0, most=1)
    unit: Literal["elements", "pixels"] = "elements"
    stop_at: int | None = setting(None, least=1)

    def facts(self) -> Card:
        return replace(self.card, unit=self.unit, max_forwards=self.steps, max_backwards=self.steps)

    def __call__(self, problem: Problem) -> Images:
        best, rows = Best(problem.images), torch.arange(len(problem), device=problem.images.device)
        units = Units(self.unit)
        precise = torch.promote_types(problem.images.dtype, torch.float32)  # Adam needs that much
        clean = problem.images.to(precise)
        adv, tau = clean, clean.new_full((len(clean), 1, 1, 1), self.threshold)
        adam = Adam(clean)
        for step in range(self.steps):
            asked = adv.to(problem.images.dtype)
            logits, grad = problem.logits_and_gradient(asked, _hinge(problem.goal))
            met = problem.goal.met(logits)
            count = units.count(asked, problem.images)
            best.offer(asked, count, met, rows if len(rows) < len(best.cost) else None)
            if problem.all_refused:
                break
            if self.stop_at is not None:
                left = best.cost[rows] > self.stop_at
                if not left.any():
                    break
                problem, rows, met, grad = problem[left], rows[left], met[left], grad[left]
                clean, adv, tau, adam = clean[left], adv[left], tau[left], adam[left]

            slope = grad.to(precise) + smooth_l0_slope(adv - clean, self.sigma, units)
            slope = keep_allowed(slope, torch.zeros_like(slope), problem.allowed)
            slope = slope / slope.abs().amax(dim=(1, 2, 3), keepdim=True).clamp_min(1e-12)
            rate, next_rate = (falling_rate(self.lr, at, self.steps) for at in (step, step + 1))
            adv = (adv - rate * adam.step(slope)).clamp(0, 1)
            drift = self.threshold_rate * next_rate  # as in the authors' code
            tau = (tau + torch.where(met.view(-1, 1, 1, 1), drift, -drift)).clamp(0, 1)
            adv = torch.where(units.norms(adv - clean) < tau, clean, adv)
        return best.images


def _hinge(goal: Goal) -> Callable[[Logits], PerImage]:
    return lambda logits: goal.margin(logits).clamp(min=0)
