"""I-FGSM: signed gradient steps inside an l-infinity ball.

Kurakin, Goodfellow, Bengio: Adversarial examples in the physical world. ICLR workshop 2017.

    x_0     = x
    x_{t+1} = project(x_t - a * sign(grad L(f(x_t))))

``L`` falls as the goal comes nearer and ``project`` goes back to [x - eps, x + eps]
and [0, 1]. One forward and one backward pass per step.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from pinprick.attacks.card import Attack, Card
from pinprick.parts.box import into_ball, keep_allowed
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class IFGSM(Attack):
    """Signed gradient steps inside an l-infinity ball.

    Attributes:
        eps: Radius of the ball, where pixel values run from 0 to 1.
        steps: Number of gradient steps.
        step_size: Length of one step, ``a``; None for ``eps / steps``.
    """

    card: ClassVar[Card] = Card(
        name="ifgsm",
        title="I-FGSM",
        norm="linf",
        kind="budget",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:1607.02533",
    )

    eps: float = pixel_distance(4 / 255)
    steps: int = setting(10, least=1)
    step_size: float | None = pixel_distance(1 / 255)

    def facts(self) -> Card:
        return replace(self.card, max_forwards=self.steps, max_backwards=self.steps)

    def __call__(self, problem: Problem) -> Images:
        step_size = self.eps / self.steps if self.step_size is None else self.step_size
        adv = problem.images
        for _ in range(self.steps):
            grad = problem.gradient(adv, problem.goal.cross_entropy)
            adv = into_ball(adv - step_size * grad.sign(), problem.images, self.eps)
            adv = keep_allowed(adv, problem.images, problem.allowed)
        return adv
