"""The search for how much the goal weighs against the size of the change, image by image."""

import torch

from pinprick.types import Mask, PerImage


class WeightSearch:
    """The weight to try next: more and more until one works, then the middle of a bracket.

    Attributes:
        weight: To be tried now, one for each image.

    Args:
        weight: The first.
        growth: How many times as much is next as long as none has worked.
    """

    def __init__(self, weight: PerImage, growth: float) -> None:
        self.weight, self._growth = weight, growth
        self._fails, self._works = torch.zeros_like(weight), torch.full_like(weight, torch.inf)

    def learn(self, worked: Mask) -> None:
        """Take note of where the weight was enough, and go on to the next."""
        self._works = self._works.where(~worked, torch.minimum(self._works, self.weight))
        self._fails = self._fails.where(worked, torch.maximum(self._fails, self.weight))
        middle = (self._works + self._fails) / 2
        self.weight = torch.where(self._works.isinf(), self.weight * self._growth, middle)
