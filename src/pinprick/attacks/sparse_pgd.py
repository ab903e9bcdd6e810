"""sparse-PGD: a dense change and a mask of k pixels, both moved by the gradient.

Zhong, Huang, Liu: Towards efficient training and evaluation of robust models against l0 bounded
adversarial perturbations. ICML 2024.

    adv = x + p * top_k(m)                             p in the box, m one number per pixel
    p   = clip(p - a * eps * sign(G * top_k(m)))       projected
    p   = clip(p - a * eps * sign(G))                  unprojected: G * sigmoid(m) has that sign
    m   = m - b * sqrt(P) * h / |h|_2,     h = (sum_c G_c p_c) * sigmoid'(m)

``G`` is the gradient of the cross-entropy at ``adv`` and ``P`` the number of pixels; the gradient
passes straight through the choice of the k largest. Where that choice stays the same for
``patience`` steps without fooling, ``m`` is drawn again and ``p`` stays. One forward and one
backward pass per step, and a forward pass at the end. An image leaves the batch as soon as it
fools.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.parts.best import Lowest
from pinprick.parts.box import into_ball, keep_allowed
from pinprick.parts.largest import mask_largest
from pinprick.parts.smallest_k import K, run_at_k
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.types import Counts, Images, Mask

_HEAD_START = 2.0  # by which pixels of the sparsest image so far stand above the others


@dataclass(frozen=True, kw_only=True)
class SparsePGD(Attack):
    """Signed steps of a dense change and gradient steps of the mask that lets k pixels through.

    Attributes:
        k: Number of pixels that may change, or "smallest" to seek the fewest for each image.
        steps: Number of gradient steps for each k that is tried.
        projected: Whether the change moves in the k chosen pixels alone, or everywhere.
        step_size: Length of a step of the change as a share of ``eps``, ``a`` above.
        mask_step: Root mean square of a step of the mask, ``b`` above.
        patience: Steps for which the choice of pixels may stay the same.
        eps: Most that a value may change, where pixel values run from 0 to 1.
        unit: Whether k counts "pixels", as in the paper, or "elements".
        rounds: Values of k that are tried per image at most, if k is "smallest".
    """

    card: ClassVar[Card] = Card(
        name="sparse_pgd",
        title="sparse-PGD",
        norm="l0",
        unit="pixels",
        kind="budget",
        access="gradients",
        targeted=True,
        masked=True,
        random=True,
        paper="arXiv:2405.05075",
        revision=2,
        differences=(
            "Targets are headed for; the authors' code ignores them.",
            "Patience belongs to each image; in the authors' code the count goes on while any "
            "other image of the batch is stuck.",
            "A fresh `m` is not moved by the gradient of the mask before it.",
            "The image after the last step is judged, too.",
            "An image that never fools keeps its try of the lowest loss.",
            'Elements and `k="smallest"` are ours; there a search begins at the sparsest image '
            "found so far.",
        ),
    )

    k: K = setting(20, least=1)
    steps: int = setting(300, least=1)
    projected: bool = True
    step_size: float = pixel_distance(0.25)
    mask_step: float = setting(0.25, above=0)
    patience: int = setting(3, least=1)
    eps: float = pixel_distance(1.0)
    unit: Literal["elements", "pixels"] = "pixels"
    rounds: int = setting(10, least=1)

    def facts(self) -> Card:
        return self.card.at_k(
            self.k,
            self.rounds,
            forwards=self.steps + 1,
            backwards=self.steps,
            unit=self.unit,
        )

    def __call__(self, problem: Problem) -> Images:
        return run_at_k(problem, self.descend, Units(self.unit), self.k, self.rounds)

    def descend(self, problem: Problem, k: Counts, near: Images, trial: int) -> tuple[Images, Mask]:
        """The best try at one k for each image, and where it fooled."""
        tries, most, units = Lowest(problem.images), int(k.max()), Units(self.unit)
        rows = torch.arange(len(problem), device=k.device)  # images not fooled yet
        moved, weight = self._begin(problem, near, trial)
        chosen, idle = _largest(weight, k, most), torch.zeros_like(k)
        for step in range(self.steps):
            adv = torch.where(units.spread(chosen, moved), moved, problem.images)
            logits, grad = problem.logits_and_gradient(adv, problem.goal.cross_entropy)
            left = ~tries.offer(adv, logits, problem.goal, rows)
            problem, rows, k, grad = problem[left], rows[left], k[left], grad[left]
            moved, weight, chosen, idle = moved[left], weight[left], chosen[left], idle[left]
            if not len(rows) or problem.all_refused:
                return tries.images, tries.met

            weight = weight - self.mask_step * self._mask_slope(problem, grad, moved, weight)
            moved = self._move(problem, grad, moved, chosen)
            before, chosen = chosen, _largest(weight, k, most)
            idle = torch.where((chosen == before).all(dim=1), idle + 1, 0)
            stuck = (idle >= self.patience).nonzero().flatten()
            if len(stuck):
                fresh = self._draw(problem[stuck], trial * self.steps + step + 1)
                weight = weight.index_copy(0, stuck, fresh)
                chosen = chosen.index_copy(0, stuck, _largest(fresh, k[stuck], most))
                idle = idle.index_fill(0, stuck, 0)
        adv = torch.where(units.spread(chosen, moved), moved, problem.images)
        logits = problem.logits(adv)
        tries.offer(adv, logits, problem.goal, rows)
        return tries.images, tries.met

    def _begin(self, problem: Problem, near: Images, trial: int) -> tuple[Images, Tensor]:
        """A random dense change and random weights, with what was found so far in front."""
        images, dtype = problem.images, problem.images.dtype
        draw = problem.rng.uniform(*images.shape[1:], step=trial, use="sparse_pgd change")
        moved = into_ball(images + self.eps * (2 * draw.to(dtype) - 1), images, self.eps)
        moved = torch.where(near != images, near, keep_allowed(moved, images, problem.allowed))
        ahead = _HEAD_START * Units(self.unit).changed(near, images)
        return moved, self._draw(problem, trial * self.steps) + ahead

    def _draw(self, problem: Problem, step: int) -> Tensor:
        """Random weights, one a unit; minus infinity where nothing may change."""
        units = Units(self.unit)
        count = units.total(problem.images[:1]).shape[1]
        weight = problem.rng.normal(count, step=step, use="sparse_pgd mask")
        if problem.allowed is None:
            return weight
        return weight.masked_fill(units.largest(problem.allowed.float()) == 0, -torch.inf)

    def _mask_slope(self, problem: Problem, grad: Images, moved: Images, weight: Tensor) -> Tensor:
        """The gradient of the weights at a root mean square of one; all zero stays that."""
        promise = Units(self.unit).total((grad * (moved - problem.images)).float())
        on = weight.sigmoid()
        slope = promise * on * (1 - on)
        size = slope.square().mean(dim=1, keepdim=True).sqrt()
        return slope / size.where(size > 0, 1)

    def _move(self, problem: Problem, grad: Images, moved: Images, chosen: Tensor) -> Images:
        """One signed step of the change, back into the ball, the box and the mask."""
        if self.projected:
            grad = grad * Units(self.unit).spread(chosen, grad)
        stepped = moved - self.step_size * self.eps * grad.sign()
        stepped = into_ball(stepped, problem.images, self.eps)
        return keep_allowed(stepped, problem.images, problem.allowed)


def _largest(weight: Tensor, k: Counts, most: int) -> Tensor:
    """A mask of the ``k`` largest weights of each row that are finite."""
    return mask_largest(weight, k, most, above=-math.inf)
