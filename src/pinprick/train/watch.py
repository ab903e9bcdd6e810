"""Accuracy and robust accuracy on a few images, quickly, to be told after each epoch."""

import torch

from pinprick.data.dataset import Dataset
from pinprick.goal import Goal
from pinprick.model import Classifier
from pinprick.problem import Problem
from pinprick.random import Streams
from pinprick.train.recipe import Recipe
from pinprick.train.speed import half_precision, tuned

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
