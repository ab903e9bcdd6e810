"""StrAttack: whole groups of pixels shrink to nothing, by ADMM; then the survivors are thinned.

Xu, Liu, Zhao, Chen, Zhang, Fan, Erdogmus, Wang, Lin: Structured adversarial attack: towards general
implementation and better interpretability. ICLR 2019.

    minimise   c * max(margin(f(x + d)), 0) + gamma * |d|_2^2 + tau * sum over groups |d_g|_2

within the box, a group being ``group`` x ``group`` pixels with all their channels. Each term has a
copy of the change to itself, and ``z`` holds the copies together (``u``, ``s``, ``v`` are duals):

    d = rho / (rho + 2 gamma) * (z - u)                                 small
    w = box(z - s)                                                      in the box
    y = box(shrink(z - v)),   shrink(a)_g = max(1 - tau / (rho |a_g|), 0) * a_g     few groups
    z = box((h z + rho (2 (d + u) + (w + s) + (y + v)) - c g) / (h + 4 rho)),  h = alpha sqrt(step)
    u += d - z,   s += w - z,   v += y - z

``g`` is the gradient of the ``max`` at ``z``. Judged is ``x + y``: two forward passes and one
backward pass a step. ``c`` is searched for, image by image. Then comes the refinement: the smallest
``share`` of the changed elements is put back, and the others descend by the same means, ungrouped,

    d = box(rho / (rho + gamma / 100) * (z - u))
    z = (alpha z + 2 rho (d + u) - c g) / (alpha + 2 rho),    u += d - z

one pass of each kind a step, with a search for ``c`` of its own in which each round puts back more.

Differs from the paper: ``y`` and ``z`` are kept in the box, which the authors' code leaves to ``w``
alone; groups tile the image, smaller at its far edges, and do not overlap; ``z`` of the refinement
is a mean, where the authors' has ``rho (d + u)`` above and so draws the change to zero. The
weight, the share and the best are each image's own. ``keep`` may choose the sparsest image, and
``halve`` puts back fewer elements after a round in vain.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
from pinprick.parts.balls import largest
from pinprick.parts.best import Best
from pinprick.parts.choice import check_choice
from pinprick.parts.groups import shrink_groups
from pinprick.parts.units import Units
from pinprick.parts.weight_search import WeightSearch
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Mask, PerImage

_GROWTH = 5.0  # how many times as much of c is next as long as none has fooled


@dataclass(frozen=True, kw_only=True)
class StrAttack(Attack):
    """Group-sparse changes by ADMM, with a search for their balance, then a refinement.

    Attributes:
        steps: ADMM steps of the first search.
        more_steps: How many more each further search has than the one before it.
        searches: How many weights ``c`` are tried for each image.
        weight: The first ``c``.
        group: Side of a group, in pixels.
        rho: How tightly ``z`` holds the copies together.
        alpha: How slowly ``z`` moves.
        tau: Weight of the groups.
        gamma: Weight of the squared distance.
        refine_steps: Steps of a round of the refinement.
        refine_searches: Rounds of the refinement; 0 to leave it out.
        refine_weight: The first ``c`` there.
        share: What share of the changed elements a round puts back.
        halve: Where a round fails, put back half as many from then on.
        eps: Most that a value may change, where pixel values run from 0 to 1.
        keep: Of all images that fooled, the one nearest in "l2" or that of fewest "elements".
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
            "keep": "elements",
        },
    }

    steps: int = 2000
    more_steps: int = 1000
    searches: int = 6
    weight: float = 1.0
    group: int = 2
    rho: float = 15.0
    alpha: float = 5.0
    tau: float = 3.0
    gamma: float = 2.0
    refine_steps: int = 400
    refine_searches: int = 8
    refine_weight: float = 5.0
    share: float = 0.03
    halve: bool = False
    eps: float = 0.5
    keep: Literal["l2", "elements"] = "l2"

    def __post_init__(self) -> None:
        check_choice("strattack", "keep", self.keep, ("l2", "elements"))
        for name, least in (("steps", 1), ("searches", 1), ("group", 1), ("refine_steps", 1)):
            if getattr(self, name) < least:
                raise BadInput(f"strattack needs {name} >= {least}, got {getattr(self, name)}")
        for name in ("more_steps", "refine_searches", "tau", "gamma"):
            if not 0 <= getattr(self, name) < math.inf:
                raise BadInput(f"strattack needs {name} >= 0, got {getattr(self, name):g}")
        for name in ("weight", "refine_weight", "rho", "alpha"):
            if not 0 < getattr(self, name) < math.inf:
                raise BadInput(f"strattack needs {name} > 0, got {getattr(self, name):g}")
        if not 0 <= self.share < 1 or not 0 < self.eps <= 1:
            raise BadInput(
                "strattack needs share from 0 to below 1 and eps above 0 up to 1, "
                f"got {self.share:g} and {self.eps:g}"
            )

    def facts(self) -> Card:
        first = sum(self._steps(search) for search in range(self.searches))
        then = self.refine_searches * self.refine_steps
        return replace(self.card, max_forwards=2 * first + then, max_backwards=first + then)

    def __call__(self, problem: Problem) -> Images:
        best = Best(problem.images)
        self._search(problem, best)
        if self.refine_searches:
            rows = best.cost.isfinite().nonzero().flatten()
            if len(rows):
                self._refine(problem[rows], best, rows)
        return best.images

    def _steps(self, search: int) -> int:
        return self.steps + search * self.more_steps

    def _search(self, problem: Problem, best: Best) -> None:
        """ADMM for one weight after another, each from where the last one ended."""
        low, high = self._box(problem)
        z = torch.zeros_like(low)
        u, s, v = z.clone(), z.clone(), z.clone()
        search = WeightSearch(z.new_full((len(problem),), self.weight), _GROWTH)
        for number in range(self.searches):
            fooled = torch.zeros_like(search.weight, dtype=torch.bool)
            for step in range(1, self._steps(number) + 1):
                _, _, pull = self._ask(problem, z, search.weight)
                d = self.rho / (self.rho + 2 * self.gamma) * (z - u)
                w = (z - s).clamp(low, high)
                y = shrink_groups(z - v, self.tau / self.rho, self.group).clamp(low, high)
                held = 2 * (d + u) + (w + s) + (y + v)
                inert = self.alpha * math.sqrt(step)
                z = (inert * z + self.rho * held - pull) / (inert + 4 * self.rho)
                z = z.clamp(low, high)
                u, s, v = u + d - z, s + w - z, v + y - z
                adv = _apply(problem, y)
                fooled |= self._offer(problem, adv, problem.goal.met(problem.logits(adv)), best)
            search.learn(fooled)

    def _refine(self, problem: Problem, best: Best, rows: Labels) -> None:
        """Put back the smallest changes of the best image and descend on those left, repeatedly."""
        low, high = self._box(problem)
        search = WeightSearch(low.new_full((len(problem),), self.refine_weight), _GROWTH)
        share = torch.full_like(search.weight, self.share)
        for _ in range(self.refine_searches):
            z = best.images[rows].to(low.dtype) - problem.images.to(low.dtype)
            kept = _larger(z, share)
            u, fooled = torch.zeros_like(z), torch.zeros_like(search.weight, dtype=torch.bool)
            for _ in range(self.refine_steps):
                d = self.rho / (self.rho + self.gamma / 100) * (z - u)
                d = torch.where(kept, d.clamp(low, high), 0)
                adv, met, pull = self._ask(problem, d, search.weight)
                fooled |= self._offer(problem, adv, met, best, rows)
                held = self.alpha * z + 2 * self.rho * (d + u)
                z = (held - pull) / (self.alpha + 2 * self.rho)
                z = torch.where(kept, z, 0)
                u = u + d - z
            search.learn(fooled)
            if self.halve:
                share = share.where(fooled, share / 2)

    def _box(self, problem: Problem) -> tuple[Tensor, Tensor]:
        """How far each value may fall and rise."""
        precise = torch.promote_types(problem.images.dtype, torch.float32)
        clean = problem.images.to(precise).contiguous()
        low, high = (-clean).clamp_min(-self.eps), (1 - clean).clamp_max(self.eps)
        if problem.allowed is not None:
            low, high = low.where(problem.allowed, 0), high.where(problem.allowed, 0)
        return low, high

    def _ask(
        self, problem: Problem, change: Tensor, weight: PerImage
    ) -> tuple[Images, Mask, Tensor]:
        """The changed image, whether it fools, and the gradient of the weighted hinge there."""
        adv = _apply(problem, change)
        logits, grad = problem.logits_and_gradient(adv, problem.goal.margin)
        push = torch.where(problem.goal.margin(logits) >= 0, weight, 0)
        return adv, problem.goal.met(logits), push.view(-1, 1, 1, 1) * grad.to(change.dtype)

    def _offer(
        self, problem: Problem, adv: Images, met: Mask, best: Best, rows: Labels | None = None
    ) -> Mask:
        if self.keep == "elements":
            cost = Units("elements").count(adv, problem.images)
        else:
            cost = (adv - problem.images).to(torch.promote_types(adv.dtype, torch.float32))
            cost = cost.flatten(1).square().sum(dim=1)
        best.offer(adv, cost, met, rows)
        return met


def _larger(change: Tensor, share: PerImage) -> Tensor:
    """Where the larger changes are: all but the share to put back, and at least one."""
    sizes = change.abs().flatten(1)
    number = (sizes > 0).sum(dim=1)
    less = (share * (number - 1)).floor().long() + 1
    return largest(sizes, (number - less).clamp_min(1), sizes.shape[1]).view_as(change)


def _apply(problem: Problem, change: Tensor) -> Images:
    """The images with a change made, exactly as they were where there is none."""
    images = problem.images
    moved = (images.to(change.dtype) + change).clamp(0, 1).to(images.dtype)
    return torch.where(change == 0, images, moved)
