"""PDPGD: descent on the margin and ascent on its weight, with a proximal step for sparsity.

Matyasko, Chau: PDPGD: primal-dual proximal gradient descent adversarial attack. arXiv 2021.

The fewest changes that fool are a saddle point of  w0 * |d|_0 + w1 * softplus(margin(f(x + d))).
``d`` descends, the weights ascend:

    r  = clip(d - lr * m / v)              m, v: Adam's mean and scale of the gradient of softplus
    d  = clip(prox(r, mu)),                mu = (w0 / w1) * lr / max(v)
    u  = u + rate * sign(margin)           w1 / w0 = exp(u), w0 + w1 = 1; both are running means

    "l0":         d_i = r_i where |r_i|^2 >= 2 * mu, else 0
    "l0_exact":   d_i = r_i where |r_i|^2 * v_i / max(v) >= 2 * mu, else 0
    "l2/3":       prox(r, mu) = argmin_z  |z - r|^2 / 2 + mu * sum_i |z_i|^(2/3)

Clip: x + d stays in [0, 1]. ``lr`` falls geometrically and ``rate`` linearly. The sparsest
``x + d`` that met the goal is kept. One forward and one backward pass per step.

The step should minimise the distance in the metric of ``v``. The published code repeats

    z = prox(z - (v / max(v)) * (z - r), mu)

for that. With "l2/3" this comes nearer to the minimum. With "l0" it stays where the first step led,
since ``v / max(v)`` is at most one: what is zero stays zero. "l0_exact" is the minimum itself.

With ``unit="pixels"``, ``|r_i|`` is the l2 norm over the channels of a pixel.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.parts.adam import Adam
from pinprick.parts.best import Best
from pinprick.parts.box import keep_allowed
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images

_NEWTON = 6  # steps to the root
_LARGEST = 1e9  # beyond this the proximal step changes nothing that can be seen


@dataclass(frozen=True, kw_only=True)
class PDPGD(Attack):
    """Adam on the margin, a proximal step on the count, and a weight between them that adapts.

    Attributes:
        steps: Number of gradient steps.
        prox: The proximal step: of "l0" as published, of "l0_exact" in Adam's metric, or of
            "l2/3", the sum of powers with exponent 2/3.
        prox_steps: Proximal steps per gradient step with "l2/3"; the others need one.
        lr: Adam's first learning rate, where pixel values run from 0 to 1.
        last_lr: The last learning rate as a share of the first.
        ratio: The first weight of the count over that of the margin, ``w0 / w1``.
        dual_lr: First step of the logarithm of that ratio.
        last_dual_lr: The last such step as a share of the first.
        memory: Weight of the past in the running means of ``w0`` and ``w1``.
        least_ratio: Lower bound of ``w0 / w1`` and of its inverse.
        unit: What is counted: "elements" (channel values), or "pixels" (all channels of a pixel
            together).
    """

    card: ClassVar[Card] = Card(
        name="pdpgd",
        title="PDPGD",
        norm="l0",
        unit="elements",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:2106.01538",
        differences=(
            'adv-lib keeps all channels of a pixel if its largest change is above the "l0" '
            'threshold. Here `unit="elements"` compares each element, and `unit="pixels"` the l2 '
            "norm of the pixel. The latter is the exact proximal step.",
            '`prox="l0_exact"` is ours.',
            'The "l2/3" step is exact. adv-lib keeps values down to 0.88 times the threshold, '
            "where zero is the better solution.",
            "All proximal steps are taken, without a test of convergence. So nothing waits for "
            "the device.",
            "Elements outside the mask have no gradient.",
            "The update is computed in float32 or better.",
        ),
    )

    steps: int = setting(500, least=1)
    prox: Literal["l0", "l0_exact", "l2/3"] = "l0"
    prox_steps: int = setting(5, least=1)
    lr: float = setting(0.1, above=0)
    last_lr: float = setting(0.01, above=0, most=1)
    ratio: float = setting(0.01, above=0)
    dual_lr: float = setting(0.1, least=0)
    last_dual_lr: float = setting(0.1, least=0, most=1)
    memory: float = setting(0.9, least=0, below=1)
    least_ratio: float = setting(1e-6, above=0, most=1)
    unit: Literal["elements", "pixels"] = "elements"

    def facts(self) -> Card:
        return replace(self.card, unit=self.unit, max_forwards=self.steps, max_backwards=self.steps)

    def __call__(self, problem: Problem) -> Images:
        best, units = Best(problem.images), Units(self.unit)
        precise = torch.promote_types(problem.images.dtype, torch.float32)
        clean = problem.images.to(precise)
        delta, adam = torch.zeros_like(clean), Adam(clean)
        weights = Weights(clean, self.ratio, self.least_ratio)
        for step in range(self.steps):
            asked = (clean + delta).to(problem.images.dtype)
            logits, grad = problem.logits_and_gradient(asked, problem.goal.margin)
            met, count = problem.goal.met(logits), units.count(asked, problem.images)
            best.offer(asked, count, met)
            if problem.all_refused:
                break

            margin = problem.goal.margin(logits).to(precise).nan_to_num(0).view(-1, 1, 1, 1)
            slope = sigmoid(margin) * grad.to(precise)  # of the softplus of the margin
            slope = keep_allowed(slope, torch.zeros_like(slope), problem.allowed)
            lr = self.lr * self.last_lr ** (step / self.steps)
            free = clean_change(delta - lr * adam.step(slope), clean)
            delta = self._sparser(free, adam.scale, lr * weights.ratio, clean)
            left = 1 - step / max(1, self.steps - 1)
            rate = self.dual_lr * (self.last_dual_lr + (1 - self.last_dual_lr) * left)
            weights.ascend(margin, rate, self.memory)
        return best.images

    def _sparser(self, free: Images, scale: Images, weight: Tensor, clean: Images) -> Images:
        """The proximal step from ``free`` in the metric of ``scale``."""
        units, largest = Units(self.unit), scale.amax(dim=(1, 2, 3), keepdim=True)
        mu, metric = weight / largest, scale / largest
        if self.prox == "l0_exact":
            return free.where(units.norms(metric.sqrt() * free).square() >= 2 * mu, 0)
        if self.prox == "l0":
            return free.where(units.norms(free).square() >= 2 * mu, 0)
        delta = free
        for _ in range(self.prox_steps):
            back = metric * (delta - free)
            delta = clean_change(shrink_powers(delta - back, mu, units), clean)
        return delta


class Weights:
    """The weights of the count and of the margin, one pair per image.

    Attributes:
        ratio: The weight of the count over that of the margin, (batch, 1, 1, 1).
    """

    def __init__(self, images: Images, ratio: float, least: float) -> None:
        self._most = -math.log(least)
        self._log = torch.full_like(images[:, :1, :1, :1], -math.log(ratio))
        self._count, self._margin = sigmoid(-self._log), sigmoid(self._log)

    @property
    def ratio(self) -> Images:
        return self._count / self._margin

    def ascend(self, margin: Tensor, rate: float, memory: float) -> None:
        """Raise the weight of the margin where it is above zero, and lower it where below."""
        self._log = (self._log + rate * margin.sign()).clamp(-self._most, self._most)
        self._count = torch.lerp(sigmoid(-self._log), self._count, memory)
        self._margin = torch.lerp(sigmoid(self._log), self._margin, memory)


def clean_change(delta: Images, clean: Images) -> Images:
    """``delta`` cut so that ``clean + delta`` lies in [0, 1]; zero stays zero."""
    return delta.clamp(-clean, 1 - clean)


def shrink_powers(change: Images, mu: Tensor, units: Units) -> Images:
    """The proximal step of ``mu`` times the sum of the powers 2/3.

    With s^4 = (2/3) mu, q = |r| / s^3 and |z| = (s t)^3, the minimum is the largest root of
    t^4 - q t + 1, unless zero is lower, which holds for q below 2. Then z / r = 1 - 1 / (q t).
    Newton's method begins at a product of square roots, which round alike in any batch.
    """
    norms = units.norms(change)
    s = (2 / 3 * mu).sqrt().sqrt()
    q = (norms / (s * s * s).clamp_min(torch.finfo(s.dtype).tiny)).clamp(2, _LARGEST)
    fourth = q.sqrt().sqrt()
    sixteenth = fourth.sqrt().sqrt()
    root = fourth * sixteenth * sixteenth.sqrt()  # q^(11/32), a little above q^(1/3)
    for _ in range(_NEWTON):
        cube = root * root * root
        root = root - (cube * root - q * root + 1) / (4 * cube - q)
    return (change * (1 - 1 / (q * root))).where(norms >= 2 * s * s * s, 0)


def sigmoid(values: Tensor) -> Tensor:
    """1 / (1 + exp(-values)); torch's own rounds differently in different batches."""
    return 1 / (1 + (-values).exp())
