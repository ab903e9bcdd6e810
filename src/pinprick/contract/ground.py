"""The network and the images that an attack is held to the contract on.

For most attacks that is a small network whose arithmetic is exact. An attack with trained weights
takes one model alone, so it is held to the contract on that model, one image at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinprick.attacks.card import Attack, Inputs
from pinprick.contract.networks import (
    SHAPE,
    Faulty,
    RowByRow,
    Watched,
    busy_network,
    network,
    some_images,
)
from pinprick.model import Classifier
from pinprick.oracle import exact_images
from pinprick.zoo.registry import load_model

COUNT = 6  # images of a watched run


@dataclass(frozen=True)
class Ground:
    """A network and images for it.

    Attributes:
        images: The images of a watched run.
        make: Gives the network anew.
    """

    images: Tensor
    make: Callable[[], nn.Module]

    def victim(self) -> Classifier:
        """The network of the watched run, without counters."""
        return Classifier(Faulty(self.make()), name="victim")

    def watched(self) -> Watched:
        """The same network, with counters."""
        return Watched(self.make())

    def others(self, count: int) -> Tensor:
        """Further images of the same kind."""
        channels, height, width = self.images.shape[1:]
        shape = (channels, height, width)
        draw = exact_images if shape == SHAPE else smooth_images
        return draw(count, shape, seed=5)


def ground_of(attack: Attack) -> Ground:
    """The exact network, or the model that the attack's weights were trained for."""
    inputs = attack.facts().inputs
    if inputs is None:
        return Ground(some_images(), busy_network)
    return Ground(smooth_images(COUNT, inputs.shape), lambda: _model_of(inputs))


def _model_of(inputs: Inputs) -> nn.Module:
    model = load_model(inputs.model)
    network(model)  # it has one
    return RowByRow(_WithPreprocessing(model))


class _WithPreprocessing(nn.Module):
    """A model as a network of images in [0, 1], in evaluation mode."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.net, self._normalise = network(model).eval(), model.normalise

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(self._normalise(images))
        return logits


def smooth_images(count: int, shape: tuple[int, int, int], seed: int = 1) -> Tensor:
    """Random images without sharp edges, in float32, away from the ends of the box."""
    coarse = exact_images(count, (shape[0], 4, 4), seed=seed, dtype=torch.float32)
    return F.interpolate(coarse, shape[1:], mode="bilinear").clamp(0.05, 0.95)
