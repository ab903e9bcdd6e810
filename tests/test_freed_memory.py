"""Freed memory is used again without asking the system, in a process that wants it so."""

import subprocess
import sys
from pathlib import Path

import pytest
from bench.fake_work import fake_cell, work

from pinprick.bench.engines.processes import Processes
from pinprick.bench.engines.workers import Share

_PROGRAM = """
import contextlib, sys
from page_faults import page_faults
from pinprick.cli import main
from pinprick.freed_memory import keep_freed_memory

if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit(3)
if sys.argv[1] == "command":
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(sys.stderr):
        main(sys.argv[2:])
print(page_faults())
"""


def faults(*arguments: str) -> int:
    """Page faults of a process that uses and frees large blocks again and again."""
    pytest.importorskip("resource")
    command = [sys.executable, "-c", _PROGRAM, *arguments]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    if run.returncode == 3:
        pytest.skip("the C library is not glibc")
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


def test_freed_memory_is_used_again_without_page_faults() -> None:
    assert faults("keep") < faults("default") / 10


def test_commands_keep_freed_memory_but_for_servers() -> None:
    kept = faults("keep")
    assert faults("command", "bench", "run", "--help") < 2 * kept + 1000
    assert faults("command", "web", "--help") > 10 * kept + 1000


def test_worker_processes_keep_freed_memory(tmp_path: Path) -> None:
    kept, report = faults("keep"), tmp_path / "faults"
    workers = Processes(work, count=1, share=Share("cpu", 1))
    try:
        workers.start(fake_cell(1, faults=str(report)))
        while not workers.wait(0.1):
            pass
    finally:
        workers.close()
    assert int(report.read_text()) < 2 * kept + 1000
