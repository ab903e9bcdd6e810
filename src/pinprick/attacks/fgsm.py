"""FGSM: one signed gradient step to the edge of an l-infinity ball.

Goodfellow, Shlens, Szegedy: Explaining and harnessing adversarial examples. ICLR 2015.

    x_adv = clip(x - eps * sign(grad L(f(x))))

``L`` falls as the goal comes nearer (the cross-entropy to the target, or its negative to the label)
and ``clip`` goes back to [0, 1]. One forward and one backward pass.
"""

from dataclasses import dataclass
from typing import ClassVar

from pinprick.attacks.card import Attack, Card
from pinprick.parts.box import signed_step
from pinprick.problem import Problem
from pinprick.settings import pixel_distance
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class FGSM(Attack):
    """One signed gradient step to the edge of an l-infinity ball.

    Attributes:
        eps: Length of the step, where pixel values run from 0 to 1.
    """

    card: ClassVar[Card] = Card(
        name="fgsm",
        title="FGSM",
        norm="linf",
        kind="budget",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:1412.6572",
        max_forwards=1,
        max_backwards=1,
    )

    eps: float = pixel_distance(8 / 255)

    def __call__(self, problem: Problem) -> Images:
        grad = problem.gradient(problem.images, problem.goal.cross_entropy)
        return signed_step(problem, problem.images, grad, self.eps, self.eps)
