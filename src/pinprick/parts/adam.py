"""Adam with a clock of its own for each image, so that images can start anew one by one.

Kingma, Ba: Adam: a method for stochastic optimization. ICLR 2015.

    m = b1 * m + (1 - b1) * g,    v = b2 * v + (1 - b2) * g^2
    step = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + 1e-8)
"""

import torch

from pinprick.types import Images, Mask, Rows

_BETAS, _EPS = (0.9, 0.999), 1e-8


class Adam:
    """The running means of one descent for each image; all begin at zero."""

    def __init__(self, images: Images) -> None:
        self._mean, self._square = torch.zeros_like(images), torch.zeros_like(images)
        ones = torch.ones_like(images[:, :1, :1, :1])
        self._left = ones, ones.clone()  # b1^t and b2^t

    def step(self, grad: Images) -> Images:
        """What to subtract for a learning rate of one: about one where the gradient is steady."""
        self._mean = torch.lerp(self._mean, grad, 1 - _BETAS[0])
        self._square = torch.lerp(self._square, grad.square(), 1 - _BETAS[1])
        self._left = self._left[0] * _BETAS[0], self._left[1] * _BETAS[1]
        size = (self._square / (1 - self._left[1])).sqrt() + _EPS
        return self._mean / (1 - self._left[0]) / size

    def restart(self, rows: Mask) -> None:
        """Forget what was seen of these images."""
        wide = rows.view(-1, 1, 1, 1)
        self._mean = self._mean.masked_fill(wide, 0)
        self._square = self._square.masked_fill(wide, 0)
        self._left = self._left[0].masked_fill(wide, 1), self._left[1].masked_fill(wide, 1)

    def __getitem__(self, rows: Rows) -> "Adam":
        cut = object.__new__(Adam)
        cut._mean, cut._square = self._mean[rows], self._square[rows]
        cut._left = self._left[0][rows], self._left[1][rows]
        return cut
