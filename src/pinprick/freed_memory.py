"""Freed memory stays with the process, so that the next pass need not get it from the system.

By default the C library of Linux gives large freed blocks back at once. The next pass then gets
them anew, page by page, each filled with zeros first. With photographs on a CPU that may take
longer than the pass itself.
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of mallopt in glibc
_NEVER = -1


def keep_freed_memory() -> bool:
    """Let freed memory stay with this process until it ends; False where that cannot be set.

    It is for programs that end after their work. Memory then stays at its peak until the end.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
        ctypes.CDLL(None).gnu_get_libc_version  # noqa: B018  other libraries may number otherwise
    except (AttributeError, OSError, TypeError):  # not glibc
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _NEVER)) and bool(mallopt(_MMAP_MAX, 0))
