"""The progress of a training: its epochs, and accuracy on a few images after each."""

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

_BATCH = 500


@dataclass(frozen=True)
class Epoch:
    """The results of one epoch.

    Attributes:
        number: The epoch, from 1.
        loss: Mean loss of its steps.
        train_accuracy: Share of the perturbed training images that were classified correctly.
        accuracy, robust_accuracy: On some test images, clean and under the recipe's probe.
        watched: Robust accuracy on some training images, if the recipe guards against collapse.
        lr: Learning rate at its end.
        seconds: Time of the training so far, without the final measurements.
        rolled_back: Whether it was rolled back because ``watched`` collapsed.
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

    def __str__(self) -> str:
        line = (
            f"epoch {self.number}: loss {self.loss:.3f}, accuracy {self.accuracy:.1%}, "
            f"robust accuracy {self.robust_accuracy:.1%}, {self.seconds:.0f} s"
        )
        if self.rolled_back:
            line += (
                f"; robust accuracy on training images fell to {self.watched:.1%}: "
                "epoch rolled back; retrying with a smaller step"
            )
        return line


@dataclass
class Progress:
    """How far a training has come.

    Attributes:
        epochs: Epochs done, without those rolled back.
        rollbacks: Epochs rolled back.
        best: The highest ``watched`` so far.
        seconds: Time spent.
        stopped: Whether the guard has ended the training early.
        history: Every epoch, including those rolled back.
    """

    epochs: int = 0
    rollbacks: int = 0
    best: float = 0.0
    seconds: float = 0.0
    stopped: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)


class Validation:
    """Accuracy and robust accuracy on a few images, which stay on the device as 8-bit values."""

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
        """Share of images classified correctly."""
        return self._share(model, None)

    def robust_accuracy(self, model: Classifier, probe: Recipe) -> float:
        """Share of images still correct under the attack of ``probe``."""
        return self._share(model, probe)

    def _share(self, model: Classifier, probe: Recipe | None) -> float:
        correct = torch.zeros((), device=self.device)
        parts = (values.split(_BATCH) for values in (self.pixels, self.labels, self.ids))
        with model.frozen(), tuned(self.device), half_precision(self.device):
            for pixels, labels, ids in zip(*parts, strict=True):
                images = pixels.float() / 255
                if probe is not None:
                    problem = Problem(model, images, Goal(labels), Streams(self.seed, ids))
                    images = probe.perturb(problem, 1.0)
                with torch.no_grad():
                    correct += (model(images).argmax(dim=1) == labels).sum()
        return correct.item() / len(self.labels)
