"""Adam with one clock per image, so that images can restart one by one, and falling step sizes.

Kingma, Ba: Adam: a method for stochastic optimization. ICLR 2015.

    m = b1 * m + (1 - b1) * g,    v = b2 * v + (1 - b2) * g^2
    step = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + 1e-8)
"""

import math

import torch

from pinprick.batch_rows import BatchRows
from pinprick.types import Images, Mask

_BETAS, _EPS = (0.9, 0.999), 1e-8


class Adam(BatchRows):
    """The running means of one descent per image; all begin at zero."""

    def __init__(self, images: Images) -> None:
        self._mean, self._square = torch.zeros_like(images), torch.zeros_like(images)
        self._decay1 = torch.ones_like(images[:, :1, :1, :1])  # b1^t
        self._decay2 = torch.ones_like(self._decay1)  # b2^t

    def step(self, grad: Images) -> Images:
        """The step for a learning rate of one: about one where the gradient is steady."""
        self._mean = torch.lerp(self._mean, grad, 1 - _BETAS[0])
        self._square = torch.lerp(self._square, grad.square(), 1 - _BETAS[1])
        self._decay1, self._decay2 = self._decay1 * _BETAS[0], self._decay2 * _BETAS[1]
        return self._mean / (1 - self._decay1) / self.scale

    @property
    def scale(self) -> Images:
        """What the last step divided the mean gradient by."""
        return (self._square / (1 - self._decay2)).sqrt() + _EPS

    def restart(self, rows: Mask) -> None:
        """Reset the means of these images."""
        wide = rows.view(-1, 1, 1, 1)
        self._mean = self._mean.masked_fill(wide, 0)
        self._square = self._square.masked_fill(wide, 0)
        self._decay1 = self._decay1.masked_fill(wide, 1)
        self._decay2 = self._decay2.masked_fill(wide, 1)


def half_cosine(step: int | float, steps: int) -> float:
    """Falls from 1 at step 0 to 0 at the last along half a cosine."""
    return (1 + math.cos(math.pi * step / steps)) / 2


def falling_rate(rate: float, step: int, steps: int) -> float:
    """From ``rate`` at the first step to a tenth of it after the last, along half a cosine."""
    return rate * (0.1 + 0.9 * half_cosine(step, steps))
