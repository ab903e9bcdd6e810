"""A ReLU network as float64 matrices on a device, to bound many images at once."""

from dataclasses import dataclass

import torch
from torch import Tensor

from pinprick.bounds.read_network import ReluNetwork
from pinprick.types import Images, Logits


@dataclass(frozen=True, eq=False)
class AffineLayers:
    """Matrices and biases with a ReLU after each but the last.

    Attributes:
        weights: One matrix per layer, (outputs, inputs).
        biases: One vector per layer.
    """

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]

    @classmethod
    def of(cls, network: ReluNetwork, device: torch.device) -> "AffineLayers":
        """The maps of a network."""
        return cls(
            tuple(torch.from_numpy(each.weight).to(device) for each in network.maps),
            tuple(torch.from_numpy(each.bias).to(device) for each in network.maps),
        )

    @property
    def classes(self) -> int:
        """How many logits there are."""
        return len(self.biases[-1])

    def values(self, images: Images) -> list[Tensor]:
        """The values before each layer of ReLUs, and the logits last."""
        inputs, found = images.flatten(1).double(), []
        for weight, bias in zip(self.weights, self.biases, strict=True):
            found.append(inputs @ weight.T + bias)
            inputs = found[-1].relu()
        return found

    def logits(self, images: Images) -> Logits:
        """The logits of images."""
        return self.values(images)[-1]
