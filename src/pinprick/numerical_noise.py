"""How far a model's margins change with the batch, and results that this noise decides.

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
from pinprick.result import AttackResult, Failure
from pinprick.types import Images, Logits, PerImage

_PROBES = 4  # images that are queried alone
_COPIES_CPU, _COPIES_GPU = 4, 64  # a smaller batch is repeated up to so many images, too
_SAFETY = 4  # the largest change over many images and batch sizes, against that of the probes


def measure_noise(model: Classifier, images: Images, logits: Logits | None = None) -> float | None:
    """How far margins of these images may change with the batch, in logits.

    This is four times the largest change that a few images show. None where it is not measured: a
    remote model gets no extra queries, and a model of labels alone has no margins.

    Args:
        model: The model, frozen.
        images: One batch, where the model is.
        logits: The logits of that batch; None to query the model.
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
    """The logits of the first images when a small batch is repeated to a larger one.

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

    Each query in another batch may be off by the noise. An adversarial image is queried twice, by
    the attack and by the referee, and its margin must be beyond the noise after both.
    """
    return replace(goal, slack=looks * (noise or 0.0))


def with_noise(result: AttackResult, model: Classifier) -> AttackResult:
    """The result with the noise of its adversarial images, or that of the attack where larger."""
    if not len(result):
        return result
    home, size = result.images.device, int(result.batch_size.max())
    with model.frozen():
        noise = measure_noise(model, result.adversarial[:size].to(model.device or home))
    if noise is None:
        return result
    known = torch.zeros(len(result), device=home) if result.noise is None else result.noise
    return replace(result, noise=known.clamp_min(noise))


def largest_noise(result: AttackResult) -> float:
    """The noise of all its images; 0 where it was not measured."""
    return 0.0 if result.noise is None or not len(result) else result.noise.max().item()


def confirm(result: AttackResult, model: Classifier) -> AttackResult:
    """The result with images within the noise queried alone; one that does not fool then failed.

    Args:
        result: Any result, with its noise.
        model: The model that was attacked.
    """
    doubtful = result.within_noise & result.success & ~result.skipped
    rows = doubtful.nonzero().squeeze(1)
    if not len(rows):
        return result
    home, here = result.images.device, model.device or result.images.device
    with model.frozen(), torch.no_grad():
        said = [model(image.to(here)).to(home) for image in result.adversarial[rows].split(1)]
    alone = torch.cat(said).to(result.adversarial_logits.dtype)
    lost = ~result.goal[rows].met(alone)
    logits, remarks = result.adversarial_logits.clone(), list(result.remarks)
    logits[rows[lost]] = alone[lost]
    for row in rows[lost].tolist():
        remarks[row] = Failure.ONLY_IN_ITS_BATCH
    return replace(result, adversarial_logits=logits, remarks=tuple(remarks))
