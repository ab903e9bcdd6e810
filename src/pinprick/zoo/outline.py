"""A network without memory for its weights: shapes are known, and nothing has been computed.

So a card that does not fit its weights is refused before memory is taken, however large the
network that it names.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from pinprick.errors import BadInput
from pinprick.zoo.card import ModelCard
from pinprick.zoo.safe import brief

_MOST = 3 * 1024 * 1024  # elements of an image on which a network is really tried


class _Weightless(TorchFunctionMode):
    """While weights are made without memory; all else, which networks compute with, is real."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.empty:  # what every layer makes its weights with
            kwargs["device"] = "meta"
        return func(*args, **kwargs)


def outline(build: Callable[[], nn.Module]) -> nn.Module | None:
    """The network that ``build`` makes, without weights; None where it cannot be made so."""
    try:
        with warnings.catch_warnings(action="ignore"), _Weightless():
            return build().to("meta").eval()
    except Exception:  # it looks at its weights while it is made
        return None


def check_takes(net: nn.Module, sketch: nn.Module | None, card: ModelCard) -> None:
    """Raise ``BadInput`` unless the network gives a score per class for an image of the card.

    The ``sketch`` is tried first, which costs next to nothing. The network itself is tried where
    the sketch fails, as some compute with the values of their weights.
    """
    shape = (1, card.channels, *card.size)
    wanted = (1, len(card.classes))
    found: tuple[int, ...] | str = wanted if sketch is None else _answer(sketch, shape, "meta")
    if (sketch is None or found != wanted) and shape[1] * shape[2] * shape[3] <= _MOST:
        found = _answer(net, shape, "cpu")
    if found != wanted:
        size = " x ".join(map(str, shape[1:]))
        given = found if isinstance(found, str) else f"its answer has the shape {found}"
        raise BadInput(f"{card.net} does not take images of {size}, as its card says ({given})")


def _answer(net: nn.Module, shape: tuple[int, ...], device: str) -> tuple[int, ...] | str:
    """The shape of what the network answers, or why it gives no answer."""
    try:
        with warnings.catch_warnings(action="ignore"), torch.no_grad():
            return tuple(net(torch.zeros(shape, device=device)).shape)
    except Exception as error:  # a network may raise anything
        return brief(error)
