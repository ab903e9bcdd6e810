"""The batch size of an attack where none is given: on a CPU about a minute per batch.

What a run that is stopped loses is the batch under attack. The estimate counts floating-point
operations and measures no time, so that the same command has the same batches on every machine.
"""

from typing import Any

import torch
from torch import Tensor, nn

from pinprick.attacks.card import Card
from pinprick.model import Classifier
from pinprick.types import Images

_SMALL = 64  # pixels per side up to which batches are faster than single images on a CPU
_SECONDS = 60  # that a batch may take if each image spends all passes of the attack
_PER_SECOND = 2e10  # operations: one core of 2020, measured on networks for 28 and 32 pixels
_LEAST, _MOST = 4, 256  # smaller batches are slower per image; the attack's own choice is 256
_COUNTED = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)


def choose_batch_size(
    given: int | None,
    model: Classifier,
    images: Images,
    facts: Card,
    *,
    max_forwards: int | None = None,
    max_backwards: int | None = None,
    max_passes: int | None = None,
) -> int | None:
    """The batch size that was given, or one that suits the model and the passes of the attack.

    On a CPU large images are attacked one by one, as they gain nothing in batches. Small ones are
    attacked in batches of about a minute, of at least 4. None leaves the choice to the attack.

    Args:
        given: The batch size that the user wants.
        model: The model; a remote one, or one that is no network, is not asked.
        images: The images to attack.
        facts: The card of the attack under its settings.
        max_forwards: Limit of the run.
        max_backwards: Limit of the run.
        max_passes: Limit of the run.
    """
    on_cpu = model.device is None or model.device.type == "cpu"
    if given is not None or not on_cpu:
        return given
    if model.size is None or max(model.size) > _SMALL:
        return 1
    if not isinstance(model.net, nn.Module) or model.sent is not None:
        return None
    forwards = _least(facts.max_forwards, max_forwards, max_passes)
    backwards = _least(facts.max_backwards, max_backwards, max_passes)
    operations = _count_operations(model.net, model, images[:1])
    if not operations:
        return None
    passes = forwards + 2 * backwards  # a backward pass takes about twice as long
    fitting = _SECONDS * _PER_SECOND / (operations * max(1.0, passes))
    if fitting >= _MOST:
        return None
    return max(_LEAST, 1 << int(fitting).bit_length() >> 1)  # a power of two


def _least(*limits: int | None) -> int | float:
    """The smallest limit; infinity where there is none."""
    return min((limit for limit in limits if limit is not None), default=float("inf"))


def _count_operations(net: nn.Module, model: Classifier, images: Images) -> int:
    """Floating-point operations of a forward pass, in convolutions and linear layers.

    ``torch.utils.flop_counter`` counts more, but its first use takes 1.6 seconds.
    """
    operations = 0

    def count(layer: Any, _: Any, out: Tensor) -> None:
        nonlocal operations
        operations += 2 * out.numel() * layer.weight[0].numel()

    layers = [layer for layer in net.modules() if isinstance(layer, _COUNTED)]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    try:
        with model.frozen(), torch.no_grad():
            model(images.to(model.device or images.device))
    finally:
        for hook in hooks:
            hook.remove()
    return operations
