"""Weights by way of other packages: read as plain tensors, one clear line when they do not come.

What those packages print goes to stderr, since stdout is for results.
"""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from pinprick.errors import BadInput
from pinprick.zoo.safe import brief, is_refusal, refusal, weights_only


@contextmanager
def fetching(name: str) -> Iterator[None]:
    """While another package gets the weights of ``name``, from its cache or from the network."""
    try:
        with redirect_stdout(sys.stderr), weights_only():
            yield
    except Exception as error:
        if is_refusal(error):
            raise refusal(f"the checkpoint of {name}", error) from error
        if _is_damaged(error):
            raise BadInput(
                f"the weights of {name} are damaged ({brief(error)}); remove them from the cache "
                "of its package, and they are fetched again"
            ) from error
        if not isinstance(error, OSError) and "hash" not in str(error):
            raise  # not the wrong checksum of a broken download, but a bug
        raise BadInput(
            f"the weights of {name} could not be fetched ({brief(error)}); they need the network "
            "once, after that they are kept"
        ) from error


def _is_damaged(error: Exception) -> bool:
    """Whether a file in the cache is not what it should be, as after a download that was cut."""
    words = ("PytorchStreamReader", "Error(s) in loading state_dict", "Error while deserializing")
    if isinstance(error, OSError):
        return error.errno == errno.EINVAL  # a place that the file is too short to have
    return isinstance(error, EOFError) or any(word in str(error) for word in words)
