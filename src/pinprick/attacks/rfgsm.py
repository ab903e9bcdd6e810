"""R-FGSM: a random step on every element, then one signed gradient step.

Tramèr, Kurakin, Papernot, Goodfellow, Boneh, McDaniel: Ensemble adversarial training. ICLR 2018.

    x'    = clip(x + a * sign(N(0, I)))
    x_adv = clip(x' - (eps - a) * sign(grad L(f(x'))))

``L`` falls as the goal comes nearer and ``clip`` goes back to [0, 1]. The random step leaves the
place where gradients may be masked. One forward and one backward pass.
"""

from dataclasses import dataclass
from typing import ClassVar

from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
from pinprick.parts.box import signed_step
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class RFGSM(Attack):
    """A random step on every element, then one signed gradient step.

    Attributes:
        eps: Length of both steps together, where pixel values run from 0 to 1.
        random_step: Length of the random step, ``a``, below ``eps``; None for ``eps / 2``.
    """

    card: ClassVar[Card] = Card(
        name="rfgsm",
        title="R-FGSM",
        norm="linf",
        kind="budget",
        access="gradients",
        targeted=True,
        masked=True,
        random=True,
        paper="arXiv:1705.07204",
        max_forwards=1,
        max_backwards=1,
    )

    eps: float = pixel_distance(8 / 255)
    random_step: float | None = setting(None, above=0)

    def __post_init__(self) -> None:
        if self.random_step is not None and self.random_step >= self.eps:
            raise BadInput(
                f"rfgsm needs random_step below eps = {self.eps:g}, got {self.random_step:g}"
            )

    def __call__(self, problem: Problem) -> Images:
        random_step = self.eps / 2 if self.random_step is None else self.random_step
        images = problem.images
        coin = problem.rng.integers(2, *images.shape[1:], step=0, use="rfgsm start")
        signs = (2 * coin - 1).to(images.dtype)
        start = signed_step(problem, images, signs, random_step, self.eps)
        grad = problem.gradient(start, problem.goal.cross_entropy)
        return signed_step(problem, start, grad, self.eps - random_step, self.eps)
