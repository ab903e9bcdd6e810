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

    @torch.no_grad()
    def follow(self, net: nn.Module, step: int) -> None:
        """Take in the network after step number ``step``; early on the mean is shorter."""
        decay = min(self.decay, (1 + step) / (10 + step))
        theirs, ours = _tensors(net), _tensors(self.net)
        whole = [not tensor.is_floating_point() for tensor in ours]
        torch._foreach_lerp_(_only(ours, whole, False), _only(theirs, whole, False), 1 - decay)
        if any(whole):
            torch._foreach_copy_(_only(ours, whole, True), _only(theirs, whole, True))


def _tensors(net: nn.Module) -> list[Tensor]:
    return [*(parameter.detach() for parameter in net.parameters()), *net.buffers()]


def _only(tensors: list[Tensor], whole: list[bool], wanted: bool) -> list[Tensor]:
    return [tensor for tensor, is_whole in zip(tensors, whole, strict=True) if is_whole == wanted]
