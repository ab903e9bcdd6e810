"""Weights from the network: one clear line when they do not come, and nothing on stdout."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from pinprick.errors import BadInput


@contextmanager
def fetching(name: str) -> Iterator[None]:
    """While weights may be downloaded; what the downloader prints goes to stderr."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (OSError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "hash" not in str(error):
            raise  # not the wrong checksum of a broken download, but a bug
        reason = " ".join(str(error).split())
        raise BadInput(
            f"the weights of {name} could not be fetched ({reason}); they need the network once, "
            "after that they are kept"
        ) from error
