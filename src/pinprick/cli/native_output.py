"""What compiled libraries print, sent to stderr, so that stdout holds results alone."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def native_output_to_stderr() -> Iterator[None]:
    """Send what is written to the process's stdout to its stderr meanwhile.

    HiGHS prints a line now and then, whatever its options are. Text that C has not yet written is
    written at both ends.
    """
    _flush()
    own = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        _flush()
        os.dup2(own, 1)
        os.close(own)


def _flush() -> None:
    sys.stdout.flush()
    with suppress(OSError, TypeError, AttributeError):  # not every platform gives its C library
        ctypes.CDLL(None).fflush(None)
