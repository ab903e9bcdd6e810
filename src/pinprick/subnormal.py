"""Subnormal numbers, too small for full precision, taken as zero while they would be slow.

Where a model is sure, the gradients of the cross-entropy fall below the smallest normal number,
1.2e-38 in single precision. A processor takes up to a hundred times as long for such a subnormal
number. It can take them as zero instead, thread by thread.

A setting of the calling thread alone would not do. The threads that torch shares its work among
keep the setting of the thread that started them, so those that are there already would stay slow,
and those that are started meanwhile would never be put back. So the setting is made inside a
parallel section of OpenMP, once in each thread, and put back in the same way. Where torch shares
its work in another way (macOS, Windows), the calling thread alone is set, after all threads were
started.
"""

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

_SMALLEST = 5e-324
_SHARED = 2**15  # values for each thread, which is enough for torch to use them all
_PROCESS = os.getpid()  # a fork of it has none of its threads, and OpenMP would wait for them


@contextmanager
def flushed() -> Iterator[None]:
    """Take subnormal numbers as zero on the processor; as it was before at the end."""
    threads = torch.get_num_threads()
    mine, before = is_flushing(), dict[int, bool]()

    def turn_on() -> None:
        before[threading.get_ident()] = is_flushing()
        torch.set_flush_denormal(True)

    def put_back() -> None:
        torch.set_flush_denormal(before.get(threading.get_ident(), mine))

    _in_each_thread(turn_on, threads)
    try:
        yield
    finally:
        _in_each_thread(put_back, max(threads, torch.get_num_threads()))


def is_flushing() -> bool:
    """Whether the calling thread takes subnormal numbers as zero."""
    return _SMALLEST * 1.0 == 0.0


def _in_each_thread(function: Callable[[], None], threads: int) -> None:
    """Call ``function`` in the calling thread and in those that share its work."""
    if threads == 1 or os.getpid() != _PROCESS:
        function()
        return
    try:
        section = ctypes.CDLL(torch._C.__file__).GOMP_parallel
    except (AttributeError, OSError):
        torch.ones(threads * _SHARED).add_(1)  # starts all threads, lest one is started meanwhile
        function()
        return
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: function())
    section(call, None, ctypes.c_uint(threads), ctypes.c_uint(0))
