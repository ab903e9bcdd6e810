"""PGD-0: gradient steps, each followed by the nearest image that changes at most k pixels.

Croce, Hein: Sparse and imperceivable adversarial attacks. ICCV 2019.

    x_0     = project(x + U(box))
    x_{t+1} = project(x_t - a * D * g / |g|_1)          g the gradient of the cross-entropy

``D`` is the number of elements. ``project(y)`` moves each pixel to its nearest allowed value c and
keeps the k pixels where that helps most, those of the largest ``|y - x|^2 - |y - c|^2``; it is
exact. Allowed is the box, less than ``eps`` from ``x``, and with ``kappa`` the line of the σ-map
(``parts/sigma_map.py``). One forward and one backward pass per step, and one more forward pass at
the end of a restart. An image leaves the batch as soon as it fools.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
from pinprick.parts.best import Lowest
from pinprick.parts.box import into_ball, keep_allowed
from pinprick.parts.largest import mask_largest
from pinprick.parts.sigma_map import Lines, sigma_lines
from pinprick.parts.smallest_k import K, run_at_k
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.types import Counts, Images, Mask


@dataclass(frozen=True, kw_only=True)
class PGD0(Attack):
    """Gradient steps from random starts, projected to images with at most k changed pixels.

    Attributes:
        k: Number of pixels that may change, or "smallest" to seek the fewest for each image.
        steps: Number of gradient steps of a restart.
        step_size: Mean length of a step over the elements, ``a``.
        restarts: Starts per image at most, for each k that is tried.
        eps: Most that a value may change, where pixel values run from 0 to 1.
        kappa: Multiple of the σ-map that each pixel stays within; None for no map.
        unit: Whether k counts "pixels", as in the paper, or "elements".
        rounds: Values of k that are tried per image at most, if k is "smallest".
    """

    card: ClassVar[Card] = Card(
        name="pgd0",
        title="PGD-0",
        norm="l0",
        unit="pixels",
        kind="budget",
        access="gradients",
        targeted=True,
        masked=True,
        random=True,
        paper="arXiv:1909.05040",
        differences=(
            "The step is a mean over the elements, so one setting fits all sizes. The authors' "
            "120000/255 for CIFAR-10 is 0.153 per element.",
            "The last image of a restart is tested too. The authors' code never tests it.",
            "Ties never exceed `k`.",
            "The losses of a batch are added, not averaged. So the step does not depend on the "
            "batch.",
            "The authors' noise of 1e-12 is left out.",
            "If no try fools, the one with the lowest loss is returned.",
            'Targets, elements and `k="smallest"` are ours.',
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "sigma": {"kappa": 0.8, "k": 50, "steps": 20, "step_size": 0.075, "restarts": 3},
    }

    k: K = setting(5, least=1)
    steps: int = setting(100, least=1)
    step_size: float = setting(0.15, above=0)
    restarts: int = setting(5, least=1)
    eps: float = pixel_distance(1.0)
    kappa: float | None = setting(None, above=0)
    unit: Literal["elements", "pixels"] = "pixels"
    rounds: int = setting(10, least=1)

    def __post_init__(self) -> None:
        if self.kappa is not None and (self.unit == "elements" or self.eps < 1):
            raise BadInput("pgd0 moves whole pixels by the σ-map alone; leave unit and eps out")

    def facts(self) -> Card:
        steps, starts = self.steps, self.restarts
        return self.card.at_k(
            self.k,
            self.rounds,
            forwards=starts * (steps + 1),
            backwards=starts * steps,
            unit=self.unit,
        )

    def __call__(self, problem: Problem) -> Images:
        return run_at_k(problem, self._descend, Units(self.unit), self.k, self.rounds)

    def _descend(
        self, problem: Problem, k: Counts, near: Images, trial: int
    ) -> tuple[Images, Mask]:
        """The best try at one k for each image, and where it fooled."""
        tries, most = Lowest(problem.images), int(k.max())
        lines = None if self.kappa is None else sigma_lines(problem, self.kappa)
        rows = torch.arange(len(problem), device=k.device)  # images not fooled yet
        for restart in range(self.restarts):
            begin = self._begin(problem, trial * self.restarts + restart)
            if restart == 0:
                found = (near != problem.images).flatten(1).any(dim=1)
                begin = torch.where(found.view(-1, 1, 1, 1), near, begin)
            adv = self._project(problem, begin, k, most, lines)
            for _ in range(self.steps):
                part, x = problem[rows], adv[rows]
                logits, grad = part.logits_and_gradient(x, part.goal.cross_entropy)
                left = ~tries.offer(x, logits, part.goal, rows)
                rows, part, x, grad = rows[left], part[left], x[left], grad[left]
                if not len(rows) or part.all_refused:
                    return tries.images, tries.met
                cut = None if lines is None else lines[rows]
                stepped = x - self.step_size * _mean_one(grad).to(x.dtype)
                adv[rows] = self._project(part, stepped, k[rows], most, cut)
            part, x = problem[rows], adv[rows]
            logits = part.logits(x)
            rows = rows[~tries.offer(x, logits, part.goal, rows)]
            if not len(rows):
                break
        return tries.images, tries.met

    def _begin(self, problem: Problem, restart: int) -> Images:
        """Every value anywhere in its box."""
        images = problem.images
        draw = problem.rng.uniform(*images.shape[1:], step=restart, use="pgd0 start")
        low = into_ball(torch.zeros_like(images), images, self.eps)
        high = into_ball(torch.ones_like(images), images, self.eps)
        return low + draw.to(images.dtype) * (high - low)

    def _project(
        self, problem: Problem, point: Images, k: Counts, most: int, lines: Lines | None
    ) -> Images:
        """The nearest image to ``point`` that is allowed and changes at most ``k`` units."""
        images, units = problem.images, Units(self.unit)
        near = into_ball(point, images, self.eps) if lines is None else lines.nearest(point)
        near = keep_allowed(near, images, problem.allowed)
        gain = units.total((point - images).square() - (point - near).square())
        kept = units.spread(mask_largest(gain, k, most), images)
        return torch.where(kept, near, images)


def _mean_one(grad: Images) -> Tensor:
    """The gradient at a mean absolute value of one; all zero stays that."""
    grad = grad.to(torch.promote_types(grad.dtype, torch.float32))
    mean = grad.abs().mean(dim=(1, 2, 3), keepdim=True)
    return grad / mean.where(mean > 0, 1)
