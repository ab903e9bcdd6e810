"""PGD-AT: training only on the images that PGD makes of every batch.

Madry, Makelov, Schmidt, Tsipras, Vladu: Towards deep learning models resistant to adversarial
attacks. ICLR 2018.

    min_w  E  max_{|d| <= eps, x + d in [0, 1]}  CE(f_w(x + d), y)

The inner maximum is one run of ``attacks/pgd.py`` from a random start, on the network in training
mode. Then follows one step of the optimiser. ``steps + 1`` passes, of which ``steps`` need no
gradient of the weights.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from pinprick.attacks.pgd import PGD
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.train.recipes.recipe import Recipe
from pinprick.types import Images

_CAREFUL = 8  # steps from which there is no more careful recipe


@dataclass(frozen=True, kw_only=True)
class PGDAT(Recipe):
    """Training on PGD's images.

    Attributes:
        eps: Radius of the l-infinity ball, where pixel values run from 0 to 1.
        steps: Gradient steps per batch.
        step_size: Length of one step; None for ``2.5 * eps / steps``, at most ``eps``.
    """

    name: ClassVar[str] = "pgd_at"
    title: ClassVar[str] = "PGD-AT"
    paper: ClassVar[str] = "arXiv:1706.06083"

    eps: float = pixel_distance(8 / 255)
    steps: int = setting(7, least=1)
    step_size: float | None = pixel_distance(None)

    @property
    def stride(self) -> float:
        """The length of one step."""
        return (
            min(self.eps, 2.5 * self.eps / self.steps) if self.step_size is None else self.step_size
        )

    def perturb(self, problem: Problem, strength: float) -> Images:
        if not strength:
            return problem.images
        eps, stride = strength * self.eps, strength * self.stride
        return PGD(eps=eps, steps=self.steps, step_size=stride)(problem)

    def probe(self, eps: float) -> Recipe:
        return PGDAT(eps=eps, steps=10, step_size=eps / 4)

    def careful(self) -> Recipe | None:
        if self.steps >= _CAREFUL:
            return None
        return replace(self, steps=2 * self.steps, step_size=self.stride / 2)
