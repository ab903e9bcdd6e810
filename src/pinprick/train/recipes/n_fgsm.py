"""N-FGSM: one signed step from a start with more noise than the ball holds, and not clipped to it.

de Jorge, Bibi, Volpi, Sanyal, Torr, Rogez, Dokania: Make some noise: reliable and efficient
single-step adversarial training. NeurIPS 2022.

    n ~ U(-k eps, k eps),  x + n into [0, 1]
    d = n + a * sign(grad CE(f(x + n), y)),  x + d into [0, 1]

With ``k = 2`` and ``a = eps`` a value may change by up to three times ``eps``. Two passes per step,
like Fast-AT, but stable at larger ``eps``.
"""

from dataclasses import dataclass
from typing import ClassVar

from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.train.recipes.pgd_at import PGDAT
from pinprick.train.recipes.recipe import Recipe
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class NFGSM(Recipe):
    """Training on one signed step from a noisy start.

    Attributes:
        eps: Length ``a`` of the step, where pixel values run from 0 to 1.
        noise: Largest noise ``k`` of the start, in units of ``eps``.
        guard: Whether to roll an epoch back when robust accuracy collapses.
    """

    name: ClassVar[str] = "n_fgsm"
    title: ClassVar[str] = "N-FGSM"
    paper: ClassVar[str] = "arXiv:2202.01181"

    eps: float = pixel_distance(8 / 255)
    noise: float = setting(2.0, above=0, most=16)
    guard: bool = True

    def perturb(self, problem: Problem, strength: float) -> Images:
        images, eps = problem.images, strength * self.eps
        draw = problem.rng.uniform(*images.shape[1:], step=0, use="n_fgsm start")
        start = (images + self.noise * eps * (2 * draw.to(images.dtype) - 1)).clamp(0, 1)
        grad = problem.gradient(start, problem.goal.cross_entropy)
        return (start - eps * grad.sign()).clamp(0, 1)

    def probe(self, eps: float) -> Recipe:
        return PGDAT(eps=eps, steps=10, step_size=eps / 4)

    def guarded(self) -> bool:
        return self.guard

    def careful(self) -> Recipe | None:
        return PGDAT(eps=self.eps, steps=2, step_size=self.eps / 2)
