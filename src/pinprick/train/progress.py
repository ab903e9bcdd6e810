"""How far a training has come, and what came of each epoch."""

from dataclasses import dataclass, field
from typing import Any

import torch

from pinprick.data.dataset import Dataset
from pinprick.goal import Goal
from pinprick.model import Classifier
from pinprick.problem import Problem
from pinprick.random import Streams
from pinprick.train.optimise import half_precision, tuned
from pinprick.train.recipes.recipe import Recipe


@dataclass(frozen=True)
class Epoch:
    """What came of one epoch.

    Attributes:
        number: The epoch, from 1.
        loss: Mean loss of its steps.
        train_accuracy: Share of the images trained on that were right, as they were trained on.
        accuracy, robust_accuracy: On some test images, clean and under the recipe's probe.
        watched: Robust accuracy on some training images, where a guard watches it.
        lr: Learning rate at its end.
        seconds: All the training so far, without what is measured at the end.
        rolled_back: Whether it was taken back, since ``watched`` collapsed.
    """

    number: int
    loss: float
    train_accuracy: float
    accuracy: float
    robust_accuracy: float
    watched: float | None
    lr: float
    seconds: float
    rolled_back: bool = False


@dataclass
class Progress:
    """How far a training has come.

    Attributes:
        epochs: Epochs done that count.
        rollbacks: Epochs taken back.
        best: The highest that ``watched`` has been.
        seconds: Time spent.
        stopped: Whether the guard has ended the training early.
        history: Every epoch, those taken back too.
    """

    epochs: int = 0
    rollbacks: int = 0
    best: float = 0.0
    seconds: float = 0.0
    stopped: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)


# Accuracy and robust accuracy on a few images, quickly, to be told after each epoch.


_BATCH = 500


class Watch:
    """Some images on the device, kept as 8-bit values."""

    def __init__(self, data: Dataset, model: Classifier, device: torch.device, seed: int) -> None:
        pixels = data.pixels
        if pixels is None:
            pixels = (data.images(model) * 255).round().to(torch.uint8)
        pixels = pixels.to(device)
        if device.type == "cuda":
            pixels = pixels.contiguous(memory_format=torch.channels_last)
        self.pixels, self.device, self.seed = pixels, device, seed
        self.labels, self.ids = data.labels.to(device), data.indices.to(device)

    def accuracy(self, model: Classifier) -> float:
        """The share that is right."""
        return self._share(model, None)

    def robust_accuracy(self, model: Classifier, probe: Recipe) -> float:
        """The share that is right under the attack of ``probe``."""
        return self._share(model, probe)

    def _share(self, model: Classifier, probe: Recipe | None) -> float:
        right = torch.zeros((), device=self.device)
        parts = (values.split(_BATCH) for values in (self.pixels, self.labels, self.ids))
        with model.frozen(), tuned(self.device), half_precision(self.device):
            for pixels, labels, ids in zip(*parts, strict=True):
                images = pixels.float() / 255
                if probe is not None:
                    problem = Problem(model, images, Goal(labels), Streams(self.seed, ids))
                    images = probe.perturb(problem, 1.0)
                with torch.no_grad():
                    right += (model(images).argmax(dim=1) == labels).sum()
        return right.item() / len(self.labels)
