"""Results that numerical noise decides: the noise of a result, and images judged alone."""

from dataclasses import replace

import torch

from pinprick.model import Classifier
from pinprick.numerical_noise import measure_noise
from pinprick.result import AttackResult

_UNCONFIRMED = "fools in its batch, but not alone: the margin is within the numerical noise"


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
    """The result with images within the noise judged alone; one that does not fool then has failed.

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
        remarks[row] = _UNCONFIRMED
    return replace(result, adversarial_logits=logits, remarks=tuple(remarks))
