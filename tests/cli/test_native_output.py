"""Lines that a compiled library prints do not mix with results."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes
from pinprick.cli.native_output import native_output_to_stderr

library = ctypes.CDLL(None)
print("before")
library.printf(b"native before\\n")
with native_output_to_stderr():
    library.printf(b"native inside\\n")
    print("inside")
library.printf(b"native after\\n")
print("after")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no C library of that name")
def test_what_c_prints_inside_goes_to_stderr() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stderr.split("\n")) == ["", "inside", "native inside"]
    assert sorted(done.stdout.split("\n")) == [
        "",
        "after",
        "before",
        "native after",
        "native before",
    ]
