"""How far a model's margins change with the batch that an image is in.

Floating-point sums depend on their order, and libraries choose the order by the batch size. So the
same image gets slightly different logits alone and in a batch. An image whose margin is smaller
than this difference fools in one batch and not in another. Exact models have a noise of zero.
"""

from dataclasses import replace
from itertools import combinations

import torch

from pinprick.goal import Goal
from pinprick.intake import batch_size_for, check_answers
from pinprick.model import Classifier, gives
from pinprick.types import Images, Logits, PerImage

_PROBES = 4  # images that are asked about alone
_COPIES_CPU, _COPIES_GPU = 4, 64  # a smaller batch is repeated up to so many images, too
_SAFETY = 4  # the largest change over many images and batch sizes, against that of the probes


def measure_noise(model: Classifier, images: Images, logits: Logits | None = None) -> float | None:
    """How far margins of these images may change with the batch, in logits.

    This is four times the largest change that a few images show. None where it is not measured: a
    remote model gets no extra queries, and a model of labels alone has no margins.

    Args:
        model: The model, frozen.
        images: One batch, where the model is.
        logits: What the model says of that batch; None to ask it.
    """
    if model.sent is not None or not gives(model.access, "scores"):
        return None
    if not len(images):
        return 0.0
    with torch.no_grad():
        together = model(images) if logits is None else logits
        alone = torch.cat([model(image) for image in images[:_PROBES].split(1)])
        answers = [alone, together[: len(alone)], *_among_copies(model, images, len(alone))]
    pairs = combinations([answer.double() for answer in answers], 2)
    changes = torch.cat([_largest_change(first - second) for first, second in pairs])
    return _SAFETY * changes.nan_to_num(0.0, 0.0, 0.0).max().item()


def _among_copies(model: Classifier, images: Images, count: int) -> list[Logits]:
    """What the model says of the first images where a small batch is repeated to a larger one.

    GPU libraries change their algorithm with the batch size, on an H200 at 32 or 64 images.
    """
    most = _COPIES_CPU if images.device.type == "cpu" else _COPIES_GPU
    size = min(most, batch_size_for(images))
    if len(images) >= size:
        return []
    rows = torch.arange(size, device=images.device) % len(images)
    try:
        return [check_answers(model(images[rows]), images[rows])[:count]]
    except torch.OutOfMemoryError:
        return []


def _largest_change(change: Logits) -> PerImage:
    """How far the difference of any two logits moves."""
    return change.amax(dim=1) - change.amin(dim=1)


def guarded(goal: Goal, noise: float | None, looks: int = 2) -> Goal:
    """The goal with a slack against the noise.

    Every look in another batch may be off by the noise. What an attack finds is looked at twice, by
    the attack and by the referee, and still lies beyond the noise then.
    """
    return replace(goal, slack=looks * (noise or 0.0))
