"""StrAttack: whole groups of pixels shrink to zero by ADMM; then fewer of the rest are kept.

Xu, Liu, Zhao, Chen, Zhang, Fan, Erdogmus, Wang, Lin: Structured adversarial attack: towards general
implementation and better interpretability. ICLR 2019.

    minimise   c * max(margin(f(x + d)), 0) + gamma * |d|_2^2 + tau * sum over groups |d_g|_2

within the box, a group being ``group`` x ``group`` pixels with all their channels, by ADMM
(``ADMM``): two forward passes and one backward pass per step. ``c`` is searched for each image.
Then comes the refinement (``Refinement``): the smallest ``share`` of the changed elements is
restored, and the others descend in the same way, ungrouped. It takes one pass of each kind per
step, with its own search for ``c``; each round restores more.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.parts.best import Best
from pinprick.parts.largest import mask_largest
from pinprick.parts.units import Units, shrink_groups
from pinprick.parts.weight_search import WeightSearch
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.types import Images, Labels, Mask, PerImage

_GROWTH = 5.0  # factor of c until an image is fooled


@dataclass(frozen=True, kw_only=True)
class StrAttack(Attack):
    """Group-sparse changes by ADMM, with a search for their balance, then a refinement.

    Attributes:
        steps: ADMM steps of the first search.
        more_steps: Steps that each search has more than the one before it.
        searches: Weights ``c`` that are tried per image.
        weight: The first ``c``.
        group: Side of a group, in pixels.
        rho: How tightly ``z`` couples the copies.
        alpha: How slowly ``z`` moves.
        tau: Weight of the groups.
        gamma: Weight of the squared distance.
        refine_steps: Steps of a round of the refinement.
        refine_searches: Rounds of the refinement; 0 to skip it.
        refine_weight: The first ``c`` there.
        share: Share of the changed elements that a round restores.
        halve: Whether to restore half as many after a round that fails.
        eps: Most that a value may change, where pixel values run from 0 to 1.
        keep: Which of all images that fooled is returned: the one with the fewest "elements", or
            the nearest in "l2", as in the paper.
    """

    card: ClassVar[Card] = Card(
        name="strattack",
        title="StrAttack",
        norm="l0",
        unit="elements",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:1808.01664",
        revision=2,
        differences=(
            "Of all images that fool, the one with the fewest elements is returned. The authors' "
            'code returns the nearest in l2, as `keep="l2"` does.',
            "`y` and `z` stay in the box. In the authors' code only `w` does, and the result may "
            "leave the box.",
            "Every image has its own weight. The authors' code multiplies every gradient by the "
            "sum of the weights of the batch.",
            "The share to restore is that of each image, not of the batch.",
            "A search succeeds if it fools, even if an earlier image was better.",
            "Groups tile the image and do not overlap. Those at the far edges may be smaller.",
            "`z` of the refinement is a mean. The published one has `rho (d + u)` in the "
            "numerator and `2 rho` in the denominator. This shrinks the change in every step, by "
            "a factor of 0.57 at rho = 15.",
            "`halve` is ours. After a round that fails, half the share is restored from then on.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "steps": 75,
            "more_steps": 0,
            "searches": 4,
            "rho": 1.0,
            "tau": 2.0,
            "gamma": 1.0,
            "refine_steps": 20,
            "refine_searches": 20,
            "share": 0.3,
            "halve": True,
            "eps": 1.0,
        },
    }

    steps: int = setting(2000, least=1)
    more_steps: int = setting(1000, least=0)
    searches: int = setting(6, least=1)
    weight: float = setting(1.0, above=0)
    group: int = setting(2, least=1)
    rho: float = setting(15.0, above=0)
    alpha: float = setting(5.0, above=0)
    tau: float = setting(3.0, least=0)
    gamma: float = setting(2.0, least=0)
    refine_steps: int = setting(400, least=1)
    refine_searches: int = setting(8, least=0)
    refine_weight: float = setting(5.0, above=0)
    share: float = setting(0.03, least=0, below=1)
    halve: bool = False
    eps: float = pixel_distance(0.5)
    keep: Literal["elements", "l2"] = "elements"

    def facts(self) -> Card:
        first = sum(self._steps(search) for search in range(self.searches))
        then = self.refine_searches * self.refine_steps
        return replace(self.card, max_forwards=2 * first + then, max_backwards=first + then)

    def __call__(self, problem: Problem) -> Images:
        best = Best(problem.images)
        self._search(Scene(problem, self.eps, self.keep, best))
        rows = best.cost.isfinite().nonzero().flatten()
        if self.refine_searches and len(rows):
            self._refine(Scene(problem[rows], self.eps, self.keep, best, rows))
        return best.images

    def _steps(self, search: int) -> int:
        return self.steps + search * self.more_steps

    def _search(self, scene: "Scene") -> None:
        """ADMM for one weight after another, each from where the last one ended."""
        search = WeightSearch(scene.full(self.weight), _GROWTH)
        admm = ADMM(scene, self.group, self.rho, self.alpha, self.tau, self.gamma)
        for number in range(self.searches):
            fooled = torch.zeros_like(search.weight, dtype=torch.bool)
            for step in range(1, self._steps(number) + 1):
                fooled |= admm.step(step, search.weight)
                if scene.is_over:
                    return
            search.learn(fooled)

    def _refine(self, scene: "Scene") -> None:
        """Restore the smallest changes of the best image and descend on the others, repeatedly."""
        search = WeightSearch(scene.full(self.refine_weight), _GROWTH)
        share = scene.full(self.share)
        for _ in range(self.refine_searches):
            descent = Refinement(scene, share, self.rho, self.alpha, self.gamma)
            fooled = torch.zeros_like(search.weight, dtype=torch.bool)
            for _ in range(self.refine_steps):
                fooled |= descent.step(search.weight)
                if scene.is_over:
                    return
            search.learn(fooled)
            if self.halve:
                share = share.where(fooled, share / 2)


class Scene:
    """What both stages share: images, the box of their changes, and the best found for each.

    Attributes:
        low, high: How far each value may fall and rise.

    Args:
        problem: The images.
        eps: Most that a value may change.
        keep: Whether the best image is the nearest that fooled, or that of fewest elements.
        best: Holds the best images.
        rows: Which rows of ``best`` these images are; None for all.
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


class ADMM:
    """The first stage: ADMM with a copy of the change for each term of the objective.

        d = rho / (rho + 2 gamma) * (z - u)                                   small
        w = box(z - s)                                                        in the box
        y = box(shrink(z - v)),   shrink(a)_g = max(1 - tau / (rho |a_g|), 0) * a_g   few groups
        z = box((h z + rho (2 (d + u) + (w + s) + (y + v)) - c g) / (h + 4 rho))
        u += d - z,   s += w - z,   v += y - z                                h = alpha sqrt(step)

    ``z`` couples the copies; ``u``, ``s`` and ``v`` are duals, ``g`` the gradient of the hinge at
    ``z``. All begin at zero. The image that is judged is ``x + y``.
    """

    def __init__(
        self, scene: Scene, group: int, rho: float, alpha: float, tau: float, gamma: float
    ) -> None:
        self._scene, self._group, self._rho = scene, group, rho
        self._alpha, self._tau, self._gamma = alpha, tau, gamma
        self._z = torch.zeros_like(scene.low)
        self._duals = tuple(self._z.clone() for _ in range(3))

    def step(self, step: int, weight: PerImage) -> Mask:
        """One step, the ``step``-th with this weight; returns where ``y`` fools."""
        scene, rho, z, (u, s, v) = self._scene, self._rho, self._z, self._duals
        _, _, pull = scene.look(z, weight)
        d = rho / (rho + 2 * self._gamma) * (z - u)
        w = scene.into_box(z - s)
        y = scene.into_box(shrink_groups(z - v, self._tau / rho, self._group))
        held = 2 * (d + u) + (w + s) + (y + v)
        inert = self._alpha * math.sqrt(step)
        z = scene.into_box((inert * z + rho * held - pull) / (inert + 4 * rho))
        self._z, self._duals = z, (u + d - z, s + w - z, v + y - z)
        return scene.judge(y)


class Refinement:
    """The second stage, one round: restores the smallest changes; the others descend ungrouped.

        d = box(rho / (rho + gamma / 100) * (z - u))
        z = (alpha z + 2 rho (d + u) - c g) / (alpha + 2 rho),    u += d - z

    ``g`` is the gradient of the hinge at ``d``, which is judged as well. A round begins at the best
    image so far, less ``share`` of its changes.
    """

    def __init__(
        self, scene: Scene, share: PerImage, rho: float, alpha: float, gamma: float
    ) -> None:
        self._scene, self._rho, self._alpha, self._gamma = scene, rho, alpha, gamma
        self._z = scene.best_change()
        self._kept, self._u = _larger(self._z, share), torch.zeros_like(self._z)

    def step(self, weight: PerImage) -> Mask:
        """One step; returns where ``d`` fools."""
        scene, rho, alpha, z, u = self._scene, self._rho, self._alpha, self._z, self._u
        d = scene.into_box(rho / (rho + self._gamma / 100) * (z - u))
        d = torch.where(self._kept, d, 0)
        adv, met, pull = scene.look(d, weight)
        scene.offer(adv, met)
        z = (alpha * z + 2 * rho * (d + u) - pull) / (alpha + 2 * rho)
        self._z = torch.where(self._kept, z, 0)
        self._u = u + d - self._z
        return met


def _larger(change: Tensor, share: PerImage) -> Tensor:
    """Where the larger changes are: all but the share to restore, and at least one."""
    sizes = change.abs().flatten(1)
    number = (sizes > 0).sum(dim=1)
    less = (share * (number - 1)).floor().long() + 1
    kept = (number - less).clamp_min(1)
    return mask_largest(sizes, kept, int(kept.max()), above=-torch.inf).view_as(change)
