"""How often a process asks the system for memory that it has just given back."""

import resource


def page_faults() -> int:
    """Page faults of a process that uses and frees large blocks again and again."""
    for _ in range(3):  # the heap grows to what it needs
        _use()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        _use()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def _use() -> None:
    for size in (10_000_000, 12_000_000, 16_000_000):  # of more than 32 MB, all freed
        bytearray(4 * size)
