"""Freed memory is used again without asking the system, in a process that wants it so."""

import subprocess
import sys

import pytest

_COUNT_FAULTS = """
import resource, sys
from pinprick.freed_memory import keep_freed_memory

if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit(3)

def use():
    for size in (10_000_000, 12_000_000, 16_000_000):  # of more than 32 MB, all freed
        bytearray(4 * size)

for _ in range(3):  # the heap grows to what it needs
    use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    """Page faults of a process that uses and frees large blocks again and again."""
    command = [sys.executable, "-c", _COUNT_FAULTS, how]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode == 3:
        pytest.skip("the C library is not glibc")
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


def test_freed_memory_is_used_again_without_page_faults() -> None:
    pytest.importorskip("resource")
    assert faults("keep") < faults("default") / 10
