"""sparse-PGD: a dense change and a mask of k pixels, both moved by the gradient.

Zhong, Huang, Liu: Towards efficient training and evaluation of robust models against l0 bounded
adversarial perturbations. ICML 2024. With groups of pixels: Zhong, Liu: Sparse-PGD: a unified
framework for sparse adversarial perturbations generation. arXiv 2405.05075, version of 2025.

    adv = x + p * top_k(m)                             p in the box, m one number per pixel
    p   = clip(p - a * eps * sign(G * top_k(m)))       projected
    p   = clip(p - a * eps * sign(G))                  unprojected: G * sigmoid(m) has that sign
    m   = m - b * sqrt(P) * h / |h|_2,     h = (sum_c G_c p_c) * sigmoid'(m)

``G`` is the gradient of the cross-entropy at ``adv`` and ``P`` the number of pixels; the gradient
passes straight through the choice of the k largest. Where that choice stays the same for
``patience`` steps without fooling, ``m`` is drawn again and ``p`` stays. One forward and one
backward pass per step, and a forward pass at the end. An image leaves the batch as soon as it
fools.

With ``group`` a row, a column or a patch of pixels takes the place of a pixel. ``m`` has one number
per group, ``top_k(m)`` lets the union of the k chosen groups through, and ``h`` sums over all
pixels of a group. Patches may lie anywhere in the image, so they overlap.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
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
        k: Number of pixels that may change, or "smallest" to seek the fewest for each image. With
            ``group`` it counts groups: rows, columns or patches.
        steps: Number of gradient steps for each k that is tried.
        projected: Whether the change moves in the k chosen pixels alone, or everywhere.
        step_size: Length of a step of the change as a share of ``eps``, ``a``.
        mask_step: Root mean square of a step of the mask, ``b``.
        patience: Steps for which the choice of pixels may stay the same.
        eps: Most that a value may change, where pixel values run from 0 to 1.
        unit: Whether k counts "pixels", as in the paper, or "elements".
        rounds: Values of k that are tried per image at most, if k is "smallest".
        group: What k counts: single pixels, or whole rows, columns or square patches, each of which
            may change as a whole. Patches may overlap.
        patch_size: Side of a patch, in pixels; an image that is smaller is one patch.
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
            "Targets are supported. The authors' code ignores them.",
            "Patience is counted per image. In the authors' code the count continues while any "
            "other image of the batch is stuck.",
            "A mask that was drawn again is not moved by the gradient of the last one.",
            "The image after the last step is tested too.",
            "If no try fools, the one with the lowest loss is returned.",
            'Elements and `k="smallest"` are ours.',
            "Patches are squares, one per position in the image. The authors' code has other "
            "patterns and strides too.",
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
    group: Literal["pixel", "row", "column", "patch"] = "pixel"
    patch_size: int = setting(3, least=1)

    def __post_init__(self) -> None:
        if self.group != "pixel" and self.unit == "elements":
            raise BadInput(
                f'sparse_pgd with group="{self.group}" changes all channels of a pixel: '
                'it needs unit="pixels", got "elements"'
            )
        if self.group == "patch" and self.k == "smallest":
            raise BadInput(
                'sparse_pgd with group="patch" needs a number as k, got "smallest": '
                "the fewest overlapping patches that hold a change are not known"
            )

    def describe(self) -> dict[str, Any]:
        """The settings as plain data; those of groups are left out where k counts units."""
        # Rows from before there were groups keep the key of their cell.
        whole, of_groups = super().describe(), ("group", "patch_size")
        single = self.group == "pixel"
        return {name: value for name, value in whole.items() if not (single and name in of_groups)}

    def facts(self) -> Card:
        square = f"{self.patch_size} x {self.patch_size}"
        patches = f"patches of {square} pixels"
        groups = {"pixel": None, "row": "rows", "column": "columns", "patch": patches}
        card = self.card.at_k(
            self.k,
            self.rounds,
            forwards=self.steps + 1,
            backwards=self.steps,
            unit=self.unit,
        )
        return replace(card, k_counts=groups[self.group])

    @property
    def _units(self) -> Units:
        if self.group == "pixel":
            return Units(self.unit)
        return Groups("pixels", self.group, self.patch_size)

    def __call__(self, problem: Problem) -> Images:
        return run_at_k(problem, self.descend, self._units, self.k, self.rounds)

    def descend(self, problem: Problem, k: Counts, near: Images, trial: int) -> tuple[Images, Mask]:
        """The best try at one k for each image, and where it fooled."""
        tries, most, units = Lowest(problem.images), int(k.max()), self._units
        rows = torch.arange(len(problem), device=k.device)  # images not fooled yet
        moved, weight = self._begin(problem, near, trial)
        chosen, idle = _largest(weight, k, most), torch.zeros_like(k)
        for step in range(self.steps):
            adv = torch.where(units.spread(chosen, moved), moved, problem.images)
            logits, grad = problem.logits_and_gradient(adv, problem.goal.cross_entropy)
            left = (~tries.offer(adv, logits, problem.goal, rows)).nonzero().flatten()
            if len(left) < len(rows):  # waits for the device once, not once per tensor
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
        ahead = _HEAD_START * self._units.changed(near, images)
        return moved, self._draw(problem, trial * self.steps) + ahead

    def _draw(self, problem: Problem, step: int) -> Tensor:
        """Random weights, one a unit; minus infinity where nothing may change."""
        units = self._units
        count = units.total(problem.images[:1]).shape[1]
        weight = problem.rng.normal(count, step=step, use="sparse_pgd mask")
        if problem.allowed is None:
            return weight
        return weight.masked_fill(units.largest(problem.allowed.float()) == 0, -torch.inf)

    def _mask_slope(self, problem: Problem, grad: Images, moved: Images, weight: Tensor) -> Tensor:
        """The gradient of the weights at a root mean square of one; all zero stays that."""
        promise = self._units.total((grad * (moved - problem.images)).float())
        on = weight.sigmoid()
        slope = promise * on * (1 - on)
        size = slope.square().mean(dim=1, keepdim=True).sqrt()
        return slope / size.where(size > 0, 1)

    def _move(self, problem: Problem, grad: Images, moved: Images, chosen: Tensor) -> Images:
        """One signed step of the change, back into the ball, the box and the mask."""
        if self.projected:
            grad = grad * self._units.spread(chosen, grad)
        stepped = moved - self.step_size * self.eps * grad.sign()
        stepped = into_ball(stepped, problem.images, self.eps)
        return keep_allowed(stepped, problem.images, problem.allowed)


@dataclass(frozen=True)
class Groups(Units):
    """Rows, columns or patches of pixels in the place of units.

    Attributes:
        group: Which of them.
        side: Side of a patch, in pixels; no longer than the image.
    """

    group: Literal["row", "column", "patch"]
    side: int

    def total(self, values: Tensor) -> Tensor:
        """The sum of the values of each group; patches share values where they overlap."""
        plane = values.sum(dim=1)
        if self.group != "patch":
            return plane.sum(dim=2 if self.group == "row" else 1)
        sums = F.avg_pool2d(plane, self._sides(values), stride=1, divisor_override=1)
        return sums.flatten(1)

    def largest(self, values: Tensor) -> Tensor:
        """The largest value of each group."""
        plane = values.amax(dim=1)
        if self.group != "patch":
            return plane.amax(dim=2 if self.group == "row" else 1)
        return F.max_pool2d(plane, self._sides(values), stride=1).flatten(1)

    def spread(self, units: Tensor, images: Images) -> Tensor:
        """Which elements lie in a group that is chosen, in the shape of ``images``."""
        batch, _, height, width = images.shape
        if self.group == "row":
            return units.view(batch, 1, height, 1).expand_as(images)
        if self.group == "column":
            return units.view(batch, 1, 1, width).expand_as(images)
        tall, wide = self._sides(images)
        corners = units.view(batch, 1, height - tall + 1, width - wide + 1).float()
        around = F.pad(corners, (wide - 1, wide - 1, tall - 1, tall - 1))
        return (F.max_pool2d(around, (tall, wide), stride=1) > 0).expand_as(images)

    def changed(self, adv: Images, images: Images) -> Tensor:
        """Which groups hold a pixel that differs."""
        return self.largest((adv != images).float()) > 0

    def _sides(self, images: Tensor) -> tuple[int, int]:
        return min(self.side, images.shape[2]), min(self.side, images.shape[3])


def _largest(weight: Tensor, k: Counts, most: int) -> Tensor:
    """A mask of the ``k`` largest weights of each row that are finite."""
    return mask_largest(weight, k, most, above=-math.inf)
