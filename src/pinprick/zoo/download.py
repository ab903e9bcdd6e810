"""Weights by way of other packages: all of them, as plain tensors, or one clear line.

What those packages print goes to stderr, since stdout is for results. They get no random numbers of
the caller's, and wait for no silent server for ever.
"""

import errno
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import torch

from pinprick.errors import BadInput, PinprickError
from pinprick.zoo.safe_loading import (
    Filled,
    brief,
    complete_weights,
    is_refusal,
    misfit,
    refusal,
    weights_only,
)

_SILENCE = 60.0  # seconds after which a connection is given up
_CHECKSUM = "invalid hash value"  # what torch.hub says of a download that was cut
_MISFIT = "Error(s) in loading state_dict"  # what torch says of names or shapes that differ
_ONE_AT_A_TIME = threading.RLock()  # the settings are swapped for every thread


@contextmanager
def fetching(name: str) -> Iterator[Filled]:
    """While another package gets the weights of ``name``, from its cache or from the network.

    Gives the record of which parameters were filled.
    """
    try:
        with (
            redirect_stdout(sys.stderr),
            weights_only(),
            _no_endless_waits(),
            torch.random.fork_rng(devices=[]),  # fresh weights are drawn, only to be replaced
            complete_weights(name) as filled,
        ):
            yield filled
    except PinprickError:
        raise
    except Exception as error:
        if is_refusal(error):
            raise refusal(f"the checkpoint of {name}", error) from error
        if _MISFIT in str(error):
            raise misfit(name, brief(error)) from error
        if _is_damaged(error):
            raise BadInput(
                f"the weights of {name} are damaged ({brief(error)}); remove them from the cache "
                "of its package, and they are fetched again"
            ) from error
        if not isinstance(error, OSError) and _CHECKSUM not in str(error):
            raise  # a bug
        raise BadInput(
            f"the weights of {name} could not be fetched ({brief(error)}); they need the network "
            "once, after that they are kept"
        ) from error


def is_about_weights(error: Exception) -> bool:
    """Whether ``fetching`` has a line for it: the file is missing, damaged or refused."""
    known = isinstance(error, PinprickError | OSError) or is_refusal(error) or _is_damaged(error)
    return known or any(words in str(error) for words in (_CHECKSUM, _MISFIT))


def _is_damaged(error: Exception) -> bool:
    """Whether a file in the cache is not what it should be, as after a download that was cut."""
    words = ("PytorchStreamReader", "Error while deserializing")
    if isinstance(error, OSError):
        return error.errno == errno.EINVAL  # a place that the file is too short to have
    return isinstance(error, EOFError) or any(word in str(error) for word in words)


@contextmanager
def _no_endless_waits() -> Iterator[None]:
    """While connections that set no timeout have one: torch.hub and gdown leave it out."""
    with _ONE_AT_A_TIME:
        kept = socket.getdefaulttimeout()
        socket.setdefaulttimeout(kept or _SILENCE)
        try:
            with _requests_with_timeout():
                yield
        finally:
            socket.setdefaulttimeout(kept)


@contextmanager
def _requests_with_timeout() -> Iterator[None]:
    """The same for the package requests, which overrides the default of sockets."""
    adapters = sys.modules.get("requests.adapters")
    if adapters is None:  # whoever uses it has imported it by now
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
        return kept(self, request, stream, timeout or _SILENCE, *more, **options)

    adapters.HTTPAdapter.send = send
    try:
        yield
    finally:
        adapters.HTTPAdapter.send = kept
