"""What StrAttack's stages share: how far values may change, what the model says, what was best."""

from typing import Literal

import torch
from torch import Tensor

from pinprick.parts.best import Best
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Mask, PerImage


class Scene:
    """Some images, the box of their changes, and the best that was found for each.

    Attributes:
        low, high: How far each value may fall and rise.

    Args:
        problem: The images.
        eps: Most that a value may change.
        keep: Whether the nearest image that fooled is best, or that of fewest elements.
        best: Where it is kept.
        rows: Whose images these are there, if not everyone's.
    """

    def __init__(
        self,
        problem: Problem,
        eps: float,
        keep: Literal["l2", "elements"],
        best: Best,
        rows: Labels | None = None,
    ) -> None:
        self._problem, self._keep, self._best, self._rows = problem, keep, best, rows
        precise = torch.promote_types(problem.images.dtype, torch.float32)
        clean = problem.images.to(precise).contiguous()
        self.low, self.high = (-clean).clamp_min(-eps), (1 - clean).clamp_max(eps)
        if problem.allowed is not None:
            self.low = self.low.where(problem.allowed, 0)
            self.high = self.high.where(problem.allowed, 0)

    @property
    def is_over(self) -> bool:
        """Whether no image is answered any more."""
        return self._problem.all_refused

    def full(self, value: float) -> PerImage:
        """The same number for every image."""
        return self.low.new_full((len(self._problem),), value)

    def into_box(self, change: Tensor) -> Tensor:
        return change.clamp(self.low, self.high)

    def best_change(self) -> Tensor:
        """The change of the best image so far."""
        best = self._best.images if self._rows is None else self._best.images[self._rows]
        return best.to(self.low.dtype) - self._problem.images.to(self.low.dtype)

    def look(self, change: Tensor, weight: PerImage) -> tuple[Images, Mask, Tensor]:
        """The changed image, whether it fools, and the gradient of the weighted hinge there."""
        adv, goal = self._apply(change), self._problem.goal
        logits, grad = self._problem.logits_and_gradient(adv, goal.margin)
        push = torch.where(goal.margin(logits) >= 0, weight, 0)
        return adv, goal.met(logits), push.view(-1, 1, 1, 1) * grad.to(change.dtype)

    def judge(self, change: Tensor) -> Mask:
        """Whether the changed image fools; if so, it may be the best."""
        adv = self._apply(change)
        met = self._problem.goal.met(self._problem.logits(adv))
        self.offer(adv, met)
        return met

    def offer(self, adv: Images, met: Mask) -> None:
        """Keep the images that are better than the best so far."""
        images = self._problem.images
        if self._keep == "elements":
            cost = Units("elements").count(adv, images)
        else:
            cost = (adv - images).to(self.low.dtype).flatten(1).square().sum(dim=1)
        self._best.offer(adv, cost, met, self._rows)

    def _apply(self, change: Tensor) -> Images:
        """The images with a change made, exactly as they were where there is none."""
        images = self._problem.images
        moved = (images.to(change.dtype) + change).clamp(0, 1).to(images.dtype)
        return torch.where(change == 0, images, moved)
