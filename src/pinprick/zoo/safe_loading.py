"""Weights by way of other packages: all of them, as plain tensors, or one clear error.

A pickle is a program: reading one may call any function. The loaders of other packages do not
always ask ``torch.load`` for plain weights; torch.hub, which torchvision uses, asks for the unsafe
form. Some loaders keep the random weights of a layer that a file does not fit. So all of them run
inside ``fetching``, which allows neither. It also sends what they print to stderr, gives them no
random numbers of the caller, and ends connections to silent servers.
"""

import errno
import pickle
import re
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

import torch
from torch import nn

from pinprick.errors import BadInput, PinprickError, first_few, first_sentence

_MAX_NAME = 60  # characters of a name that a message repeats
_TIMEOUT = 60.0  # seconds of silence after which a connection is closed
_CHECKSUM = "invalid hash value"  # torch.hub's message for a download that was cut
_STATE_DICT = "Error(s) in loading state_dict"  # torch's message for names or shapes that differ
_BATCH_NORM = ("running_mean", "running_var")  # buffers that training makes
_LOCK = threading.RLock()  # functions and settings are swapped for every thread


class FilledParameters:
    """Which parameters have been filled from a file."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._parameters: dict[int, nn.Parameter] = {}  # held, so that ids stay unique

    def add(self, net: nn.Module) -> None:
        self._parameters |= {id(one): one for one in net.parameters()}

    def check(self, net: nn.Module) -> None:
        """Raise ``BadInput`` where a parameter was not filled."""
        missing = [key for key, one in net.named_parameters() if id(one) not in self._parameters]
        if missing:
            raise wrong_weights(self._name, f"the file lacks {name_list(missing)}")


@contextmanager
def fetching(name: str) -> Iterator[FilledParameters]:
    """For the block in which another package gets the weights of ``name``, cached or fetched.

    Gives the record of which parameters were filled.
    """
    try:
        with (
            redirect_stdout(sys.stderr),
            weights_only(),
            _timeouts(),
            torch.random.fork_rng(devices=[]),  # fresh weights are drawn, only to be replaced
            complete_weights(name) as filled,
        ):
            yield filled
    except PinprickError:
        raise
    except Exception as error:
        if is_unsafe_pickle(error):
            raise unsafe_pickle(f"the checkpoint of {name}", error) from error
        if _STATE_DICT in str(error):
            raise wrong_weights(name, first_sentence(error)) from error
        if _is_damaged(error):
            raise BadInput(
                f"the weights of {name} are damaged ({first_sentence(error)}); remove them from "
                "the cache of its package, and they are fetched again"
            ) from error
        if not isinstance(error, OSError) and _CHECKSUM not in str(error):
            raise  # a bug
        raise BadInput(
            f"the weights of {name} could not be fetched ({first_sentence(error)}); they need the "
            "network once, after that they are cached"
        ) from error


def is_about_weights(error: Exception) -> bool:
    """Whether ``fetching`` explains the error: the file is missing, damaged or refused."""
    if isinstance(error, PinprickError | OSError):
        return True
    text = str(error)
    return is_unsafe_pickle(error) or _is_damaged(error) or _CHECKSUM in text or _STATE_DICT in text


def _is_damaged(error: Exception) -> bool:
    """Whether a file in the cache is not what it should be, as after a download that was cut."""
    words = ("PytorchStreamReader", "Error while deserializing")
    if isinstance(error, OSError):
        return error.errno == errno.EINVAL  # an offset beyond the end of the file
    return isinstance(error, EOFError) or any(word in str(error) for word in words)


@contextmanager
def _timeouts() -> Iterator[None]:
    """Give connections without a timeout one: torch.hub and gdown set none."""
    with _LOCK:
        kept = socket.getdefaulttimeout()
        socket.setdefaulttimeout(kept or _TIMEOUT)
        try:
            with _timeouts_of_requests():
                yield
        finally:
            socket.setdefaulttimeout(kept)


@contextmanager
def _timeouts_of_requests() -> Iterator[None]:
    """The same for the package requests, which overrides the default of sockets."""
    adapters = sys.modules.get("requests.adapters")
    if adapters is None:  # a package that uses it has imported it by now
        yield
        return
    kept = adapters.HTTPAdapter.send

    def send(
        self: Any,
        request: Any,
        stream: Any = False,
        timeout: Any = None,
        *more: Any,
        **options: Any,
    ) -> Any:
        return kept(self, request, stream, timeout or _TIMEOUT, *more, **options)

    adapters.HTTPAdapter.send = send
    try:
        yield
    finally:
        adapters.HTTPAdapter.send = kept


@contextmanager
def weights_only() -> Iterator[None]:
    """Make every ``torch.load`` in the block read plain weights or nothing."""
    with _LOCK:
        kept = torch.load, torch.serialization.load

        def load(f: Any, map_location: Any = None, *_: Any, **options: Any) -> Any:
            mmap = options.get("mmap")
            return kept[0](f, map_location=map_location, weights_only=True, mmap=mmap)

        torch.load = torch.serialization.load = load
        try:
            yield
        finally:
            torch.load, torch.serialization.load = kept


def unsafe_pickle(what: str, error: Exception) -> BadInput:
    """The error for a checkpoint that is not plain weights: what it needs, and the way out."""
    found = re.search(r"GLOBAL (\S+)|function (\S+) whose module|instance of (\S+)", str(error))
    wanted = next((name for name in found.groups() if name), "") if found else ""
    reason = (
        f"is a pickle that needs {wanted}, and reading it could run code; nothing was run"
        if wanted
        else "is damaged, or a pickle of more than weights; nothing of it was run"
    )
    way_out = "save the weights alone, with save_model or torch.save(net.state_dict(), ...)"
    return BadInput(f"{what} {reason}; {way_out}")


def is_unsafe_pickle(error: BaseException) -> bool:
    """Whether ``error`` says that a pickle was not plain weights."""
    return isinstance(error, pickle.UnpicklingError) or "weights_only" in str(error)


@contextmanager
def complete_weights(name: str) -> Iterator[FilledParameters]:
    """Refuse files that do not fill a whole network in the block; ``name`` is the model's."""
    with _LOCK:
        kept = nn.Module.load_state_dict
        filled = FilledParameters(name)

        def load(
            net: nn.Module, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
        ) -> Any:
            result = kept(net, state_dict, strict=strict, assign=assign)
            trained = {key for key, _ in net.named_parameters() if not _is_constant(key)}
            missing = [
                key for key in result.missing_keys if key in trained or key.endswith(_BATCH_NORM)
            ]
            if missing:
                raise wrong_weights(name, f"the file lacks {name_list(missing)}")
            filled.add(net)
            return result

        nn.Module.load_state_dict = load  # type: ignore[method-assign, assignment]
        try:
            yield filled
        finally:
            nn.Module.load_state_dict = kept  # type: ignore[method-assign]


def _is_constant(key: str) -> bool:
    """Whether a parameter is part of the preprocessing, which robustbench sets in its code."""
    return key.rpartition(".")[2] in ("mean", "std", "mu", "sigma")


def wrong_weights(name: str, what: str) -> BadInput:
    return BadInput(f"the weights of {name} do not fit the network: {what}")


def printable(name: str) -> str:
    """The name as a message repeats it: printable, and not too long."""
    shown = name if name.isprintable() else ascii(name)
    return shown if len(shown) <= _MAX_NAME else f"{shown[:_MAX_NAME]}..."


def name_list(names: Sequence[str]) -> str:
    """The first three names as a message repeats them, and how many more there are."""
    return first_few([printable(name) for name in names])
