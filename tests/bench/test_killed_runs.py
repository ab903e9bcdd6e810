"""Runs that are killed or stopped: the finished store is that of an undisturbed run."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.fake_work import contents, fake_cells, starts, work
from pinprick.bench.engines.run_cells import run_cells
from pinprick.bench.store import Store

SCRIPT = Path(__file__).with_name("fake_work.py")


def start(store: Path, engine: str, count: int, *settings: str) -> subprocess.Popen[bytes]:
    """A run in a process of its own, and in a group of its own as in a terminal."""
    return subprocess.Popen(
        [sys.executable, SCRIPT, store, engine, str(count), *settings],
        start_new_session=True,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def wait_for(condition: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def processes(log: Path) -> set[int]:
    """The processes that have worked on cells."""
    if not log.exists():
        return set()
    return {int(line.split()[1]) for line in log.read_text().splitlines() if " " in line}


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def is_undisturbed(store: Path, tmp_path: Path, count: int, *, sleep: float) -> bool:
    whole = Store(tmp_path / "undisturbed")
    run_cells(fake_cells(count, sleep=sleep), whole, work)
    assert not Store(store).damaged()
    return contents(Store(store)) == contents(whole)


@pytest.mark.parametrize(
    ("engine", "kills"),
    [
        ("here", 2),
        pytest.param("here", 15, marks=pytest.mark.slow),
        pytest.param("processes", 8, marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_at_random_moments_ends_as_an_undisturbed_one(
    tmp_path: Path, engine: str, kills: int
) -> None:
    store, choose, count = tmp_path / "store", random.Random(kills), 4 * kills
    for _ in range(kills):
        run = start(store, engine, count, "sleep=0.05")
        before = len(Store(store).keys())
        wait_for(lambda: run.poll() is not None or len(Store(store).keys()) > before)  # noqa: B023
        time.sleep(choose.uniform(0, 0.15))
        run.kill()
        run.communicate()
    assert len(Store(store).keys()) >= kills
    last = start(store, engine, count, "sleep=0.05")
    assert (last.communicate()[1], last.returncode) == (b"", 0)
    assert is_undisturbed(store, tmp_path, count, sleep=0.05)


def test_two_processes_on_one_store_do_each_cell_once(tmp_path: Path) -> None:
    log, store, count = tmp_path / "log", tmp_path / "store", 30
    runs = [start(store, "here", count, "sleep=0.05", f"log={log}") for _ in range(2)]
    for run in runs:
        assert (run.communicate()[1], run.returncode) == (b"", 0)
    assert sorted(starts(log)) == list(range(count))
    whole = Store(tmp_path / "undisturbed")
    run_cells(fake_cells(count, sleep=0.05, log=str(log)), whole, work)
    assert contents(Store(store)) == contents(whole)


@pytest.mark.slow
def test_no_worker_outlives_a_run_that_was_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run = start(tmp_path / "store", "processes", 2, "sleep=60", f"log={log}")
    wait_for(lambda: len(processes(log)) == 2)
    run.kill()
    run.communicate()
    wait_for(lambda: not any(map(alive, processes(log))), seconds=5)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["here", "processes"])
def test_ctrl_c_ends_a_run_cleanly(tmp_path: Path, engine: str) -> None:
    log, store = tmp_path / "log", tmp_path / "store"
    run = start(store, engine, 40, "sleep=0.2", f"log={log}")
    wait_for(lambda: Store(store).keys())
    os.killpg(run.pid, signal.SIGINT)
    _, errors = run.communicate(timeout=10)
    assert b"pinprick.errors.Stopped: stopped: " in errors
    assert errors.count(b"Traceback") == 1
    assert not any(map(alive, processes(log)))
    assert not list((store / "running").iterdir())
    assert 0 < len(Store(store).keys()) < 40
    assert not Store(store).damaged()
