"""Runs that share a store: shares, claims, and claims of the dead."""

import errno
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.fake_work import fake_cells, starts, work
from pinprick.bench.engines.claims import Claims, in_share, read_share
from pinprick.bench.engines.run_cells import run_cells
from pinprick.bench.store import Store
from pinprick.errors import BadInput

pytestmark = pytest.mark.plain  # whole numbers where hints say float

KEY = "ab" * 16


def dead_process() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def write_claim(folder: Path, run: str, *, age: float = 0.0) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in ((run, ""), (KEY, run)):
        (folder / name).write_text(text)
        then = (folder / name).stat().st_mtime - age
        os.utime(folder / name, (then, then))


class Killed(BaseException):
    """Stands for SIGKILL."""


@contextmanager
def no_file_can_grow() -> Iterator[None]:
    """Files can be made and not be written to, as on a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_shares_are_disjoint_and_whole() -> None:
    keys = [cell.key for cell in fake_cells(60)]
    shares = [{key for key in keys if in_share(key, (part, 7))} for part in range(1, 8)]
    assert sum(map(len, shares)) == 60
    assert set().union(*shares) == set(keys)
    assert all(shares)


def test_a_run_does_its_share_alone(tmp_path: Path) -> None:
    cells = fake_cells(12)
    store = Store(tmp_path)
    run_cells(cells, store, work, share=(2, 3))
    assert set(store.keys()) == {cell.key for cell in cells if in_share(cell.key, (2, 3))}


def test_a_share_is_read() -> None:
    assert read_share("2/8") == (2, 8)
    for text in ("0/8", "9/8", "2", "2/", "a/b", "-1/8", "1/2/3"):
        with pytest.raises(BadInput, match="a share is written as 2/8"):
            read_share(text)


def test_a_cell_is_claimed_once_until_it_is_released(tmp_path: Path) -> None:
    with Claims(tmp_path) as one, Claims(tmp_path) as other:
        assert one.take(KEY)
        assert one.take(KEY)
        assert not other.take(KEY)
        assert other.owner(KEY) == f"process {os.getpid()} on {socket.gethostname()}"
        one.release(KEY)
        assert other.take(KEY)
    assert not list(tmp_path.iterdir())


def test_the_claim_of_a_dead_process_does_not_block(tmp_path: Path) -> None:
    with Claims(tmp_path) as claims:
        write_claim(tmp_path, f"{socket.gethostname()}.{dead_process()}.0123.run")
        assert claims.take(KEY)


def test_the_claim_of_another_machine_counts_until_it_is_silent(tmp_path: Path) -> None:
    with Claims(tmp_path, dead=60) as claims:
        write_claim(tmp_path, "elsewhere.example.17.0123.run", age=50)
        assert not claims.take(KEY)
        assert claims.owner(KEY) == "process 17 on elsewhere.example"
        write_claim(tmp_path, "elsewhere.example.17.0123.run", age=70)
        assert claims.take(KEY)


def test_a_claim_without_its_run_does_not_block(tmp_path: Path) -> None:
    with Claims(tmp_path) as claims:
        (tmp_path / KEY).write_text("elsewhere.17.0123.run")
        assert claims.take(KEY)


def test_a_claim_that_was_never_written_blocks_for_a_while_only(tmp_path: Path) -> None:
    with Claims(tmp_path, dead=60) as claims:
        (tmp_path / KEY).touch()
        assert not claims.take(KEY)
        assert claims.owner(KEY) == "another run"
        os.utime(tmp_path / KEY, (0, 0))
        assert claims.take(KEY)


def test_a_run_killed_while_it_writes_a_claim_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def kill(path: Path, text: str, **options: Any) -> int:
        write(path, "", **options)
        raise Killed

    with Claims(tmp_path) as killed, Claims(tmp_path) as other:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_text", kill)
            with pytest.raises(Killed):
                killed.take(KEY)
        assert other.take(KEY)


def test_a_cell_is_claimed_once_where_files_have_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    test_a_cell_is_claimed_once_until_it_is_released(tmp_path)
    with Claims(tmp_path) as claims:
        before = set(tmp_path.iterdir())
        monkeypatch.setattr(Path, "write_bytes", refuse)
        with pytest.raises(BadInput, match="cannot write"):
            claims.take(KEY)
        assert set(tmp_path.iterdir()) == before


def test_a_claim_counts_as_made_where_the_file_server_lost_its_reply(tmp_path: Path) -> None:
    with Claims(tmp_path) as claims:
        (tmp_path / KEY).write_text(claims._run)
        assert claims.take(KEY)


def test_a_claim_that_cannot_be_written_is_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    with Claims(tmp_path) as claims:
        before = set(tmp_path.iterdir())
        with no_file_can_grow(), pytest.raises(BadInput, match=rf"cannot write .*{KEY}: File too"):
            claims.take(KEY)
        assert set(tmp_path.iterdir()) == before
        assert claims.take(KEY)


def test_a_run_that_cannot_be_entered_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "touch", full)
    with pytest.raises(BadInput, match=r"cannot write .*: No space left"), Claims(tmp_path):
        pass


def test_what_dead_runs_left_is_removed_at_the_start(tmp_path: Path) -> None:
    write_claim(tmp_path, f"{socket.gethostname()}.{dead_process()}.0123.run")
    with Claims(tmp_path):
        assert len(list(tmp_path.iterdir())) == 1


def test_a_run_that_lives_touches_its_file(tmp_path: Path) -> None:
    with Claims(tmp_path, touched=0.01) as claims:
        file = tmp_path / claims._run
        os.utime(file, (0, 0))
        for _ in range(500):
            if file.stat().st_mtime > 0:
                break
            threading.Event().wait(0.01)
        assert file.stat().st_mtime > 0


def test_two_runs_at_once_do_each_cell_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    cells = fake_cells(20, log=str(log), sleep=0.01)
    store = Store(tmp_path / "store")
    store.prepare()
    found = []

    def run() -> None:
        found.append(run_cells(cells, Store(store.folder), work))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(starts(log)) == list(range(20))
    assert sum(one.finished for one in found) == 20
    assert all(one.found + one.finished == 20 for one in found)
    assert all(one.finished for one in found)


def test_a_run_waits_for_cells_of_another_run(tmp_path: Path) -> None:
    log = tmp_path / "log"
    cells = fake_cells(2, log=str(log))
    store = Store(tmp_path / "store")
    store.prepare()
    with Claims(store.folder / "running") as other:
        assert other.take(cells[0].key)
        thread = threading.Timer(0.3, other.release, [cells[0].key])
        thread.start()
        assert run_cells(cells, store, work).finished == 2
        thread.join()
    assert starts(log) == [1, 0]
