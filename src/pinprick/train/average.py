"""A running mean of a network's weights, which is often better than the last ones."""

from copy import deepcopy

import torch
from torch import Tensor, nn


class Average:
    """A copy of a network that follows it at a distance.

    Attributes:
        net: The copy; buffers such as the statistics of batch norm are averaged like weights.
    """

    def __init__(self, net: nn.Module, decay: float) -> None:
        self.net = deepcopy(net).requires_grad_(False)
        self.decay = decay
        pairs = list(zip(_tensors(self.net), _tensors(net), strict=True))  # once, not each step
        self._averaged = [pair for pair in pairs if pair[0].is_floating_point()]
        self._copied = [pair for pair in pairs if not pair[0].is_floating_point()]

    @torch.no_grad()
    def follow(self, step: int) -> None:
        """Take in the network after step number ``step``; early on the mean is shorter."""
        decay = min(self.decay, (1 + step) / (10 + step))
        ours, theirs = ([*each] for each in zip(*self._averaged, strict=True))
        torch._foreach_lerp_(ours, theirs, 1 - decay)
        for our, their in self._copied:
            our.copy_(their, non_blocking=True)


def _tensors(net: nn.Module) -> list[Tensor]:
    return [*(parameter.detach() for parameter in net.parameters()), *net.buffers()]
