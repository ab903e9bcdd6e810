"""DI-FGSM: signed steps along gradients seen through randomly resized and padded images.

Xie, Zhang, Zhou, Bai, Wang, Ren, Yuille: Improving transferability of adversarial examples with
input diversity. CVPR 2019.

    g_{t+1} = m * g_t + grad L(f(T(x_t))) / |grad L(f(T(x_t)))|_1
    x_{t+1} = project(x_t - a * sign(g_{t+1}))

``T`` resizes and pads with probability ``p`` and leaves the image alone otherwise, ``L`` falls as
the goal comes nearer and ``project`` goes back to [x - eps, x + eps] and [0, 1]. With momentum it
is M-DI-FGSM. One forward and one backward pass per step.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from pinprick.attacks.card import Attack, Card
from pinprick.parts.box import accumulate, signed_step
from pinprick.parts.diversity import Resize, diverse_gradient
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class DIFGSM(Attack):
    """Signed steps along gradients through random views, inside an l-infinity ball.

    Attributes:
        eps: Radius of the ball, where pixel values run from 0 to 1.
        steps: Number of gradient steps.
        step_size: Length of one step, ``a``; None for ``eps / steps``.
        momentum: Weight of earlier gradients, ``m``; 1 gives M-DI-FGSM.
        diversity: Probability of a random view, ``p``; 0 for I-FGSM.
        resize: "shrink" keeps the size the network sees, "enlarge" makes it larger.
        ratio: Side of the image over that of the padded canvas, at the least.
        pad_value: What is put around the image; 0.5 is the authors' grey.
    """

    card: ClassVar[Card] = Card(
        name="difgsm",
        title="DI-FGSM",
        norm="linf",
        kind="budget",
        access="gradients",
        targeted=True,
        masked=True,
        random=True,
        paper="arXiv:1803.06978",
        differences=(
            "By default the image shrinks within its own size, which every network accepts. "
            '`resize="enlarge"` is the paper\'s.',
            "Each image draws its own view. The authors draw one per batch.",
            "Offsets cover every position where the image fits. The authors' offsets never "
            "reach the last.",
            "Both sides of a non-square image shrink by one draw.",
        ),
    )

    eps: float = pixel_distance(16 / 255)
    steps: int = setting(20, least=1)
    step_size: float | None = pixel_distance(1 / 255)
    momentum: float = setting(0.0, least=0, hint="1 is usual")
    diversity: float = setting(0.5, least=0, most=1, hint="it is a probability")
    resize: Resize = "shrink"
    ratio: float = setting(299 / 330, least=0.1, below=1)
    pad_value: float = setting(0.5, least=0, most=1)

    def facts(self) -> Card:
        return replace(self.card, max_forwards=self.steps, max_backwards=self.steps)

    def __call__(self, problem: Problem) -> Images:
        step_size = self.eps / self.steps if self.step_size is None else self.step_size
        adv = problem.images
        velocity = torch.zeros_like(adv)
        for step in range(self.steps):
            grad = diverse_gradient(
                problem,
                adv,
                step=step,
                probability=self.diversity,
                resize=self.resize,
                ratio=self.ratio,
                pad_value=self.pad_value,
            )
            velocity = accumulate(velocity, grad, self.momentum)
            adv = signed_step(problem, adv, velocity, step_size, self.eps)
        return adv
