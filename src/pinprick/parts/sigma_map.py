"""The σ-map: local variation of an image, and how far each value may change without being seen.

Croce, Hein: Sparse and imperceivable adversarial attacks. ICCV 2019.

    sigma = sqrt(min(std(left, self, right), std(above, self, below)))

in each channel, the border repeated. Where either neighbourhood is flat, sigma is zero. A pixel
then moves along a line: a grey one to ``x + l * sigma``, a coloured one along its own colour to
``x * (1 + l * sigma)`` with the same ``l`` in all channels, ``|l| <= kappa`` and inside [0, 1].
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick.batch_rows import BatchRows
from pinprick.problem import Problem
from pinprick.types import Images


def sigma_map(images: Images) -> Images:
    """``sigma`` of each value, as above."""
    padded = F.pad(images, (1, 1, 1, 1), mode="replicate")
    across = padded[:, :, 1:-1].unfold(3, 3, 1).std(dim=-1, correction=0)
    down = padded[..., 1:-1].unfold(2, 3, 1).std(dim=-1, correction=0)
    return torch.minimum(across, down).sqrt()


@dataclass(frozen=True)
class Lines(BatchRows):
    """The line segment that each pixel may move along: ``images + l * along``.

    Attributes:
        images: The clean images.
        along: The direction of each pixel's line; zero where it may not change.
        low, high: The smallest and largest ``l`` of each pixel, (batch, 1, height, width).
    """

    images: Images
    along: Images
    low: Tensor
    high: Tensor

    def nearest(self, points: Images) -> Images:
        """The nearest point to ``points`` on the line of each pixel."""
        square = self.along.square().sum(dim=1, keepdim=True)
        share = ((points - self.images) * self.along).sum(dim=1, keepdim=True)
        return self._at((share / square.where(square > 0, 1)).clamp(self.low, self.high))

    def ends(self) -> tuple[Images, Images]:
        """Every pixel at the low end of its line, and every pixel at the high end."""
        return self._at(self.low), self._at(self.high)

    def _at(self, distance: Tensor) -> Images:
        return (self.images + distance * self.along).clamp(0, 1)


def sigma_lines(problem: Problem, kappa: float) -> Lines:
    """The lines of the σ-map: at most ``kappa`` times it, inside [0, 1] and the mask."""
    images = problem.images
    along = sigma_map(images) if images.shape[1] == 1 else images * sigma_map(images)
    if problem.allowed is not None:
        along = along * problem.allowed
    step = along.where(along > 0, 1)
    high = ((1 - images) / step).where(along > 0, torch.inf).amin(dim=1, keepdim=True)
    low = (-images / step).where(along > 0, -torch.inf).amax(dim=1, keepdim=True)
    return Lines(images, along, low.clamp(-kappa, 0), high.clamp(0, kappa))
