"""Checkpoints are read, never run.

A pickle is a program: reading one may call any function there is. ``torch.load`` reads plain
weights only where it is told to, and loaders of other packages do not always tell it; torch.hub,
which torchvision uses, asks for the unsafe form. So they run inside ``weights_only()``.
"""

import pickle
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from pinprick.errors import BadInput
from pinprick.zoo.card import ModelCard

_LONGEST = 60  # characters of a name that a message repeats
_ONE_LOADER_AT_A_TIME = threading.RLock()  # the function is swapped for every thread


@contextmanager
def weights_only() -> Iterator[None]:
    """While ``torch.load``, whoever calls it and however, reads plain weights or nothing."""
    with _ONE_LOADER_AT_A_TIME:
        kept = torch.load, torch.serialization.load

        def load(f: Any, map_location: Any = None, *_: Any, **options: Any) -> Any:
            mmap = options.get("mmap")
            return kept[0](f, map_location=map_location, weights_only=True, mmap=mmap)

        torch.load = torch.serialization.load = load
        try:
            yield
        finally:
            torch.load, torch.serialization.load = kept


def refusal(what: str, error: Exception) -> BadInput:
    """One line for a checkpoint that is not plain weights: what it asked for, and the way out."""
    found = re.search(r"GLOBAL (\S+)|function (\S+) whose module|instance of (\S+)", str(error))
    wanted = next((name for name in found.groups() if name), "") if found else ""
    reason = (
        f"is a pickle that needs {wanted}, and reading it could run code; nothing was run"
        if wanted
        else "is damaged, or a pickle of more than weights; nothing of it was run"
    )
    way_out = "save the weights alone, with save_model or torch.save(net.state_dict(), ...)"
    return BadInput(f"{what} {reason}; {way_out}")


def is_refusal(error: BaseException) -> bool:
    """Whether ``error`` says that a pickle was not plain weights."""
    return isinstance(error, pickle.UnpicklingError) or "weights_only" in str(error)


def brief(error: BaseException) -> str:
    """The first sentence of what an error of another package says, in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text.partition(". ")[0][:200]


def plain_name(name: str) -> str:
    """The name as a message repeats it: printable, and not too long."""
    shown = name if name.isprintable() else ascii(name)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."


def listed(names: list[str], most: int = 3) -> str:
    """The first few names, and how many more there are."""
    rest = len(names) - most
    first = ", ".join(map(plain_name, names[:most]))
    return first + (f" and {rest} more" if rest > 0 else "")


# Networks of other packages get all their weights, or none of them is used.
#
# The loaders of those packages keep the random weights of a layer that a file does not fit, and go
# on. So they run inside ``complete_weights()``, which sees every ``load_state_dict``.


_ONE_METHOD_AT_A_TIME = threading.RLock()  # the method is swapped for every thread
_MEASURED = ("running_mean", "running_var")  # buffers that training makes


class Filled:
    """Which parameters have been filled from a file."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._parameters: dict[int, nn.Parameter] = {}  # held, so that no other has their place

    def note(self, net: nn.Module) -> None:
        self._parameters |= {id(one): one for one in net.parameters()}

    def check(self, net: nn.Module) -> None:
        """Raise ``BadInput`` where a parameter was not filled."""
        lost = [name for name, one in net.named_parameters() if id(one) not in self._parameters]
        if lost:
            raise misfit(self._name, f"the file lacks {listed(lost)}")


@contextmanager
def complete_weights(name: str) -> Iterator[Filled]:
    """While a file that does not fill a whole network is refused; ``name`` is the model's."""
    with _ONE_METHOD_AT_A_TIME:
        kept = nn.Module.load_state_dict
        filled = Filled(name)

        def load(
            net: nn.Module, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
        ) -> Any:
            result = kept(net, state_dict, strict=strict, assign=assign)
            trained = {key for key, _ in net.named_parameters() if not _is_constant(key)}
            lost = [one for one in result.missing_keys if one in trained or one.endswith(_MEASURED)]
            if lost:
                raise misfit(name, f"the file lacks {listed(lost)}")
            filled.note(net)
            return result

        nn.Module.load_state_dict = load  # type: ignore[method-assign, assignment]
        try:
            yield filled
        finally:
            nn.Module.load_state_dict = kept  # type: ignore[method-assign]


def _is_constant(key: str) -> bool:
    """Whether it is part of the preprocessing, which robustbench fixes in its code."""
    return key.rpartition(".")[2] in ("mean", "std", "mu", "sigma")


def misfit(name: str, what: str) -> BadInput:
    return BadInput(f"the weights of {name} do not fit the network: {what}")


# A network without memory for its weights: shapes are known, and nothing has been computed.
#
# So a card that does not fit its weights is refused before memory is taken, however large the
# network that it names.


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
