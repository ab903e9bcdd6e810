"""TI-FGSM: signed steps along gradients smoothed over neighbouring pixels.

Dong, Pang, Su, Zhu: Evading defenses to transferable adversarial examples by translation-invariant
attacks. CVPR 2019.

    g_{t+1} = m * g_t + v / |v|_1,    v = W * grad L(f(T(x_t)))
    x_{t+1} = project(x_t - a * sign(g_{t+1}))

``W`` is a kernel of sum one, convolved with each channel: to first order, the gradient averaged
over shifts of the image. ``T`` is the random view of DI-FGSM, taken with probability ``p``; ``L``
falls as the goal comes nearer and ``project`` goes back to [x - eps, x + eps] and [0, 1]. One
forward and one backward pass per step. The paper's three attacks:

    TI-FGSM       steps=1,  momentum=0, diversity=0
    TI-MI-FGSM    steps=10, momentum=1, diversity=0
    TI-DIM        steps=10, momentum=1, diversity=0.7
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
from pinprick.parts.box import accumulate, signed_step
from pinprick.parts.diversity import Resize, diverse_gradient
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.types import Images

Kernel = Literal["gaussian", "uniform", "linear"]


@dataclass(frozen=True, kw_only=True)
class TIFGSM(Attack):
    """Signed steps along smoothed gradients inside an l-infinity ball.

    Attributes:
        eps: Radius of the ball, where pixel values run from 0 to 1.
        steps: Number of gradient steps.
        step_size: Length of one step, ``a``; None for ``eps / steps``.
        kernel: Shape of ``W``: "gaussian", "uniform" or "linear".
        kernel_size: Its width in pixels, odd; 15 suits 299 x 299, 3 to 7 suit 32 x 32.
        momentum: Weight of earlier gradients, ``m``.
        diversity: Probability of a random view, ``p``.
        resize, ratio, pad_value: Settings of the view, as in DI-FGSM.
    """

    card: ClassVar[Card] = Card(
        name="tifgsm",
        title="TI-FGSM",
        norm="linf",
        kind="budget",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:1904.02884",
        differences=("With `diversity`, the differences are those of `difgsm`.",),
    )

    eps: float = pixel_distance(16 / 255)
    steps: int = setting(1, least=1)
    step_size: float | None = pixel_distance(None)
    kernel: Kernel = "gaussian"
    kernel_size: int = setting(15, least=1)
    momentum: float = setting(0.0, least=0, hint="1 is usual")
    diversity: float = setting(0.0, least=0, most=1, hint="it is a probability")
    resize: Resize = "shrink"
    ratio: float = setting(299 / 330, least=0.1, below=1)
    pad_value: float = setting(0.5, least=0, most=1)

    def __post_init__(self) -> None:
        if self.kernel_size % 2 == 0:
            raise BadInput(
                f"tifgsm needs kernel_size to be odd, as in 3, 7 or 15, got {self.kernel_size}"
            )

    def facts(self) -> Card:
        passes = self.steps
        random = self.diversity > 0
        return replace(self.card, random=random, max_forwards=passes, max_backwards=passes)

    def __call__(self, problem: Problem) -> Images:
        step_size = self.eps / self.steps if self.step_size is None else self.step_size
        profile = kernel_profile(self.kernel, self.kernel_size).to(problem.images)
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
            velocity = accumulate(velocity, smooth(grad, profile), self.momentum)
            adv = signed_step(problem, adv, velocity, step_size, self.eps)
        return adv


def kernel_profile(kernel: Kernel, size: int) -> Tensor:
    """The profile of a kernel, of sum one; ``size = 2m + 1`` is its width in pixels.

    A kernel is the outer product of its profile with itself:

        gaussian   exp(-u^2 / 2), u evenly spaced from -3 to 3; deviation (size - 1) / 6 pixels
        uniform    1
        linear     1 - |i| / (m + 1), i = -m ... m
    """
    middle = size // 2
    offset = torch.arange(-middle, middle + 1, dtype=torch.float64)
    if kernel == "gaussian":
        profile = (-(3 * offset / max(1, middle)).square() / 2).exp()
    elif kernel == "uniform":
        profile = torch.ones_like(offset)
    else:
        profile = 1 - offset.abs() / (middle + 1)
    return profile / profile.sum()


def smooth(grad: Images, profile: Tensor) -> Images:
    """``grad`` smoothed along one side and then the other; outside the image it is zero."""
    channels, middle = grad.flatten(0, 1).unsqueeze(1), len(profile) // 2
    down = F.conv2d(channels, profile.view(1, 1, -1, 1), padding=(middle, 0))
    across = F.conv2d(down, profile.view(1, 1, 1, -1), padding=(0, middle))
    return across.view_as(grad)
