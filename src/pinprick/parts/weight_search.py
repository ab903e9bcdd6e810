"""Search for the weight of the loss against the size of the change, per image."""

import torch

from pinprick.types import Mask, PerImage


class WeightSearch:
    """The weight to try next: it grows until one works, then it is bisected.

    Attributes:
        weight: The weight to try now, per image.

    Args:
        weight: The first weight.
        growth: Factor of the next weight as long as none has worked.
    """

    def __init__(self, weight: PerImage, growth: float) -> None:
        self.weight, self._growth = weight, growth
        self._fails, self._works = torch.zeros_like(weight), torch.full_like(weight, torch.inf)

    def learn(self, worked: Mask) -> None:
        """Record where the weight was enough, and set the next one."""
        self._works = self._works.where(~worked, torch.minimum(self._works, self.weight))
        self._fails = self._fails.where(worked, torch.maximum(self._fails, self.weight))
        middle = (self._works + self._fails) / 2
        self.weight = torch.where(self._works.isinf(), self.weight * self._growth, middle)
