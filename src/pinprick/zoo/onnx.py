"""An ``.onnx`` file through onnxruntime: a model that gives scores and no gradients.

Layout, size, number type and batch size are read from the graph. Where no card says otherwise the
graph is taken to want images in [0, 1], or from 0 to 255 where its input is 8-bit.
"""

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pinprick.errors import BadInput, MissingExtra, first_sentence
from pinprick.model import Classifier
from pinprick.types import Images, Logits
from pinprick.zoo.card import ModelCard
from pinprick.zoo.from_card import wrap_net
from pinprick.zoo.prepare import cover_and_crop, in_batches, to_channels

_KINDS = {
    "tensor(float)": torch.float32,
    "tensor(float16)": torch.float16,
    "tensor(double)": torch.float64,
    "tensor(uint8)": torch.uint8,
}
_MAX_ELEMENTS = 1 << 27  # elements of one batch, half a gigabyte
_PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")


def load(path: Path, card: ModelCard | None, name: str) -> Classifier:
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise MissingExtra(f"the model {name}", "onnxruntime", "onnx") from None

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised, and said once
    there = set(onnxruntime.get_available_providers())
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=[one for one in _PROVIDERS if one in there]
        )
    except Exception as error:  # onnxruntime has a dozen kinds of its own
        raise BadInput(
            f"{path} is damaged or no model that onnxruntime runs ({first_sentence(error)})"
        ) from None
    net = OnnxNet(session, str(path))
    return _with_card(net, card, name) if card else _without_card(net, name)


class OnnxNet:
    """One ONNX graph as a function from images to scores.

    Attributes:
        size: Height and width that the graph is made for; None if any will do.
        channels: The channels it is made for; None if any will do.
        batch: The number of images it takes at a time; None if any will do.
    """

    def __init__(self, session: Any, where: str) -> None:
        self._session, self._where = session, where
        inputs = session.get_inputs()
        shape = list(inputs[0].shape) if len(inputs) == 1 else []
        if len(shape) != 4:
            raise BadInput(
                f"{where} must take one batch of images, with four axes; its inputs are "
                + ", ".join(f"{one.name} {list(one.shape)}" for one in inputs)
            )
        if inputs[0].type not in _KINDS:
            raise BadInput(f"{where} takes {inputs[0].type}; {', '.join(_KINDS)} can be given")
        self._input, self.kind = inputs[0].name, _KINDS[inputs[0].type]
        self._channels_last = shape[3] in (1, 3) and shape[1] not in (1, 3)
        order = (0, 3, 1, 2) if self._channels_last else (0, 1, 2, 3)
        self.batch, self.channels, high, wide = (_fixed(shape[axis]) for axis in order)
        self.size = (high, wide) if high and wide else None
        if math.prod(_fixed(axis) or 1 for axis in shape) > _MAX_ELEMENTS:
            raise BadInput(
                f"{where} takes batches of {shape}, which is more than {_MAX_ELEMENTS} elements"
            )
        self._output = _scores(session.get_outputs(), where)

    def __call__(self, images: Images) -> Logits:
        channels, *size = images.shape[1:]
        if channels != (self.channels or channels) or tuple(size) != (self.size or tuple(size)):
            raise BadInput(
                f"{self._where} takes images of {self.channels or 'any'} channels and size "
                f"{self.size or 'any'}, got {tuple(images.shape[1:])}"
            )
        scores = in_batches(self._run, images.detach().cpu(), self.batch or max(len(images), 1))
        return scores.to(images)

    def _run(self, images: Tensor) -> Tensor:
        if self.kind is torch.uint8:
            images = (images * 255).round()
        if self._channels_last:
            images = images.permute(0, 2, 3, 1)
        values = images.to(self.kind).contiguous().numpy()
        (scores,) = self._session.run([self._output], {self._input: values})
        return torch.from_numpy(scores)


def _with_card(net: OnnxNet, card: ModelCard, name: str) -> Classifier:
    for what, own, said in (
        ("size", net.size, card.size),
        ("channels", net.channels, card.channels),
    ):
        if own not in (None, said):
            raise BadInput(f"the card of {name} says {what} {said}, but the graph takes {own}")
    if net.kind is torch.uint8 and (card.mean or card.std):
        raise BadInput(f"{name} takes 8-bit pixels, so its card can have no mean and std")
    count = _count_scores(net, card, name)
    if count != len(card.classes):
        raise BadInput(f"{name} gives {count} scores, but its card has {len(card.classes)} classes")
    return wrap_net(net, card, name, access="scores")


def _count_scores(net: OnnxNet, card: ModelCard, name: str) -> int:
    """How many scores the graph gives for an image of the card."""
    shape = (card.channels, *card.size)
    if (net.batch or 1) * math.prod(shape) > _MAX_ELEMENTS:
        raise BadInput(f"the card of {name} asks for batches of more than {_MAX_ELEMENTS} elements")
    try:
        return net(torch.zeros(1, *shape)).shape[1]
    except BadInput:
        raise
    except Exception as error:  # onnxruntime has a dozen kinds of its own
        size = " x ".join(map(str, shape))
        raise BadInput(
            f"{name} does not take images of {size}, as its card says ({first_sentence(error)})"
        ) from None


def _without_card(net: OnnxNet, name: str) -> Classifier:
    channels = net.channels or 3
    prepare = cover_and_crop(net.size, channels=channels) if net.size else to_channels(channels)
    return Classifier(net, size=net.size, prepare=prepare, access="scores", name=name)


def _fixed(axis: Any) -> int | None:
    """The length of an axis, or None where it has a name or nothing instead."""
    return axis if isinstance(axis, int) and axis > 0 else None


def _scores(outputs: Any, where: str) -> str:
    """The first output that has a row of numbers for each image."""
    for one in outputs:
        if one.type in ("tensor(float)", "tensor(float16)", "tensor(double)") and (
            len(one.shape or [0, 0]) == 2
        ):
            return str(one.name)
    found = ", ".join(f"{one.name} {one.type} {one.shape}" for one in outputs)
    raise BadInput(f"{where} must give scores of shape (batch, classes); its outputs are {found}")
