"""A layer watched during one pass: what it gave, and how much a score rises with each value of it.

The network goes on with a copy of the layer's output, from which the gradient is taken. So nothing
that comes before the layer is kept in memory or passed backwards through, and a layer that follows
and works in place does not spoil what was seen. Where a layer is called several times in a pass,
the last call counts.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pinprick.errors import BadInput
from pinprick.explain.grid import planes
from pinprick.explain.question import choose_classes, pick
from pinprick.model import Classifier
from pinprick.types import Images, Labels

Planes = Float[Tensor, "batch planes rows columns"]


def watch(
    model: Classifier, layer: nn.Module, name: str, images: Images, classes: Labels | None
) -> tuple[Planes, Planes, Labels]:
    """What the layer gave, the gradient of each image's class score there, and the classes."""
    with model.frozen(), torch.enable_grad(), _kept(layer) as kept:
        logits = model(images)
        classes = choose_classes(logits, images, classes)
        if not kept:
            raise BadInput(
                f"the layer {name!r} was not called when the model was asked; pass another, or "
                "the network as it was before it was compiled"
            )
        if planes(kept[0], images) is None:
            raise BadInput(
                f"the layer {name!r} gives the shape {tuple(kept[0].shape)}, which is no map of "
                f"the {tuple(images.shape)} images; pass the name of one that gives (batch, "
                "channels, height, width), or a token for each patch"
            )
        if not logits.requires_grad:
            raise BadInput(
                f"what the model says does not depend on the layer {name!r}, or it passes no "
                "gradient back; pass the name of another layer"
            )
        (slope,) = torch.autograd.grad(pick(logits, classes), kept[0], materialize_grads=True)
    seen, slopes = planes(kept[0].detach(), images), planes(slope, images)
    assert seen is not None
    assert slopes is not None
    return seen, slopes, classes


@contextmanager
def _kept(layer: nn.Module) -> Iterator[list[Tensor]]:
    """The output of the layer's last call, alone in a list, once there was one."""
    kept: list[Tensor] = []

    def keep(_module: nn.Module, _given: Any, output: Any) -> Any:
        first = first_tensor(output)
        if first is None:
            return None
        own = first.detach().clone().requires_grad_()
        kept[:] = [own]
        return own.clone() if first is output else (own.clone(), *output[1:])

    handle = layer.register_forward_hook(keep)
    try:
        yield kept
    finally:
        handle.remove()


def first_tensor(output: Any) -> Tensor | None:
    """What a layer gave, alone or before things that are no tensors; None if it is no numbers."""
    first, *rest = output if type(output) is tuple and output else (output,)
    alone = not any(isinstance(other, Tensor) for other in rest)
    return first if alone and isinstance(first, Tensor) and first.is_floating_point() else None
