"""MI-FGSM: signed steps along an accumulated gradient, for examples that carry over.

Dong, Liao, Pang, Su, Zhu, Hu, Li: Boosting adversarial attacks with momentum. CVPR 2018.

    g_{t+1} = m * g_t + grad L(f(x_t)) / |grad L(f(x_t))|_1
    x_{t+1} = project(x_t - a * sign(g_{t+1}))

``L`` falls as the goal comes nearer and ``project`` goes back to [x - eps, x + eps] and [0, 1].
One forward and one backward pass per step.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from pinprick.attacks.card import Attack, Card
from pinprick.parts.box import accumulate, signed_step
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class MIFGSM(Attack):
    """Signed steps along an accumulated gradient inside an l-infinity ball.

    Attributes:
        eps: Radius of the ball, where pixel values run from 0 to 1.
        steps: Number of gradient steps.
        step_size: Length of one step, ``a``; None for ``eps / steps``.
        momentum: Weight of earlier gradients, ``m``; 0 for I-FGSM.
    """

    card: ClassVar[Card] = Card(
        name="mifgsm",
        title="MI-FGSM",
        norm="linf",
        kind="budget",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:1710.06081",
        differences=(
            "A zero gradient adds nothing to `g`. The authors' code divides by zero.",
            "The label is the true one. The authors' competition code uses the prediction of the "
            "ensemble.",
        ),
    )

    eps: float = pixel_distance(16 / 255)
    steps: int = setting(10, least=1)
    step_size: float | None = pixel_distance(None)
    momentum: float = setting(1.0, least=0, hint="1 is usual")

    def facts(self) -> Card:
        return replace(self.card, max_forwards=self.steps, max_backwards=self.steps)

    def __call__(self, problem: Problem) -> Images:
        step_size = self.eps / self.steps if self.step_size is None else self.step_size
        adv = problem.images
        velocity = torch.zeros_like(adv)
        for _ in range(self.steps):
            grad = problem.gradient(adv, problem.goal.cross_entropy)
            velocity = accumulate(velocity, grad, self.momentum)
            adv = signed_step(problem, adv, velocity, step_size, self.eps)
        return adv
