"""Grey images, and models whose gradient is known, for single steps of Pinprick by hand."""

from collections.abc import Callable

import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams


def lead(images: Tensor) -> Tensor:
    """Class 0 leads by 100, or by more where the image is brighter."""
    first = 100 + images.flatten(1).sum(dim=1)
    return torch.stack((first, torch.zeros_like(first)), dim=1)


def any_change(images: Tensor) -> Tensor:
    """Class 1 as soon as one value is below 0.5; the gradient is that of ``lead``."""
    fools = (images.detach() < 0.5).flatten(1).any(dim=1)
    return lead(images) - 1e6 * fools.unsqueeze(1) * torch.tensor([1.0, 0.0])


def grey(
    count: int,
    model: Callable[[Tensor], Tensor] = lead,
    shape: tuple[int, int, int] = (1, 10, 10),
    targeted: bool = False,
    most: int | None = None,
) -> Problem:
    """Grey images of class 0; with a most number of passes, images may be refused."""
    images = torch.full((count, *shape), 0.5)
    labels = torch.zeros(count, dtype=torch.long)
    goal = Goal(labels, labels + 1 if targeted else None)
    clean = model(images).detach()
    rng = Streams(0, torch.arange(count))
    return Problem(Classifier(model), images, goal, rng, clean_logits=clean, max_forwards=most)
