"""Fast-AT: training on a single large step from a random start.

Wong, Rice, Kolter: Fast is better than free: revisiting adversarial training. ICLR 2020.

    d ~ U(-eps, eps),  x + d into [0, 1]
    d = clip(d + a * sign(grad CE(f(x + d), y)), -eps, eps),  x + d into [0, 1]

Two passes per step. From one epoch to the next such a network may learn to resist this one step and
nothing else (catastrophic overfitting). So its accuracy under PGD on training images is measured
after each epoch. Where that falls by more than ``drop``, the epoch is rolled back and retried with
a shorter step, then with two half steps, then with four.

Differs from the paper: the start is clipped to the box before the gradient for every dataset, and a
collapse does not end the training.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from pinprick.attacks.pgd import PGD
from pinprick.problem import Problem
from pinprick.settings import pixel_distance
from pinprick.train.recipes.pgd_at import PGDAT
from pinprick.train.recipes.recipe import Recipe
from pinprick.types import Images

_STRIDE = 1.25  # times eps; longer steps collapse
_SHORTER = 0.75


@dataclass(frozen=True, kw_only=True)
class FastAT(Recipe):
    """Training on one signed step from a random start.

    Attributes:
        eps: Radius of the l-infinity ball, where pixel values run from 0 to 1.
        step_size: Length ``a`` of the step; None for ``1.25 * eps``.
        guard: Whether to roll an epoch back when robust accuracy collapses.
    """

    name: ClassVar[str] = "fast_at"
    title: ClassVar[str] = "Fast-AT"
    paper: ClassVar[str] = "arXiv:2001.03994"

    eps: float = pixel_distance(8 / 255)
    step_size: float | None = pixel_distance(None)
    guard: bool = True

    @property
    def stride(self) -> float:
        """The length of the step."""
        return min(1.0, _STRIDE * self.eps) if self.step_size is None else self.step_size

    def perturb(self, problem: Problem, strength: float) -> Images:
        if not strength:
            return problem.images
        eps, stride = strength * self.eps, strength * self.stride
        return PGD(eps=eps, steps=1, step_size=stride)(problem)

    def probe(self, eps: float) -> Recipe:
        return PGDAT(eps=eps, steps=10, step_size=eps / 4)

    def guarded(self) -> bool:
        return self.guard

    def careful(self) -> Recipe | None:
        if self.stride > self.eps:
            return replace(self, step_size=_SHORTER * self.stride)
        return PGDAT(eps=self.eps, steps=2, step_size=self.eps / 2)
