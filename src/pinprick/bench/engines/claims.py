"""Which run does which cell, where several runs share one store.

    running/HOST.PID.TOKEN.run      one file per run, touched every few seconds while the run lives
    running/KEY                     names the run that works on the cell with this key

A claim counts while its run lives. A run is dead if its process is gone from this machine, or if
its file has not been touched for a while. All times are those of the file server, so that the
clocks of the machines do not matter. Two runs may in rare moments work on one cell. That costs time
and nothing else: both write the same rows, and files are written whole.
"""

import os
import secrets
import socket
import threading
from contextlib import suppress
from pathlib import Path

from pinprick.errors import BadInput
from pinprick.files import open_folder, writing

_TOUCHED = 10.0  # seconds between two signs of life
_DEAD = 60.0  # seconds without one, after which a run counts as dead


def read_share(text: str) -> tuple[int, int]:
    """Read "2/8", the second of eight shares."""
    part, _, parts = text.partition("/")
    if part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts):
        return int(part), int(parts)
    raise BadInput(f"a share is written as 2/8, the second of eight, got {text!r}")


def in_share(key: str, share: tuple[int, int]) -> bool:
    """Whether the cell with this key belongs to a share such as (2, 8)."""
    part, parts = share
    return int(key, 16) % parts == part - 1


class Claims:
    """The cells that this run works on, as other runs on the store see them.

    As a context it says that this run lives, and takes all claims back at the end.

    Args:
        folder: The folder ``running`` of the store.
        touched: Seconds between two signs of life.
        dead: Seconds without one, after which another run counts as dead.
    """

    def __init__(self, folder: Path, *, touched: float = _TOUCHED, dead: float = _DEAD) -> None:
        self._folder, self._touched, self._dead = folder, touched, dead
        host = socket.gethostname()
        self._run = f"{host}.{os.getpid()}.{secrets.token_hex(4)}.run"
        self._mine: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)

    def __enter__(self) -> "Claims":
        open_folder(self._folder)
        self._touch()
        for file in self._folder.iterdir():
            if file.suffix == ".run":
                if not self._lives(file.name):
                    file.unlink(missing_ok=True)
            elif not self._is_held(file.name):
                file.unlink(missing_ok=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for key in list(self._mine):
            self.release(key)
        (self._folder / self._run).unlink(missing_ok=True)

    def take(self, key: str) -> bool:
        """Claim a cell; False if another run that lives works on it."""
        if key in self._mine:
            return True
        if not self._make(key):
            if self._is_held(key):
                return False
            (self._folder / key).unlink(missing_ok=True)
            if not self._make(key):
                return False
        self._mine.add(key)
        return True

    def release(self, key: str) -> None:
        """Give a cell up, or say that it is finished."""
        self._mine.discard(key)
        (self._folder / key).unlink(missing_ok=True)

    def owner(self, key: str) -> str:
        """Host and process that work on a cell, as far as its claim says, for people."""
        host, _, process = self._claim(key).removesuffix(".run").rpartition(".")[0].rpartition(".")
        return f"process {process} on {host}" if host else "another run"

    def _make(self, key: str) -> bool:
        """Make a claim, whole or not at all; False if there is one of another run."""
        claim, temporary = self._folder / key, self._folder / f".{key}.{self._run}.tmp"
        with writing(claim):
            try:
                temporary.write_text(self._run)
                _link(temporary, claim)
            except FileExistsError:
                return self._claim(key) == self._run  # the reply of a file server may be lost
            finally:
                temporary.unlink(missing_ok=True)
        return True

    def _claim(self, key: str) -> str:
        """The run that a claim names; empty if there is no claim, or nothing in it."""
        with suppress(OSError):
            return (self._folder / key).read_text()
        return ""

    def _is_held(self, key: str) -> bool:
        run = self._claim(key)
        return self._lives(run) if run else self._is_recent(key)

    def _lives(self, run: str) -> bool:
        host, _, process = run.removesuffix(".run").rpartition(".")[0].rpartition(".")
        if host == socket.gethostname() and not _runs(process):
            return False
        return self._is_recent(run)

    def _is_recent(self, name: str) -> bool:
        """Whether a file was touched lately, by the clock of the file server."""
        self._touch()
        try:
            now = (self._folder / self._run).stat().st_mtime
            age = now - (self._folder / name).stat().st_mtime
        except FileNotFoundError:
            return False
        return age < self._dead

    def _touch(self) -> None:
        """Say that this run lives; makes its file if it is missing."""
        file = self._folder / self._run
        with writing(file):
            file.touch()

    def _live(self) -> None:
        while not self._ended.wait(self._touched):
            with suppress(OSError):
                os.utime(self._folder / self._run)


def _link(file: Path, name: Path) -> None:
    """Give a file another name, which must be new; copy it where files have one name only."""
    try:
        os.link(file, name)
    except FileExistsError:
        raise
    except OSError:
        name.touch(exist_ok=False)
        try:
            name.write_bytes(file.read_bytes())
        except OSError:
            name.unlink(missing_ok=True)
            raise


def _runs(process: str) -> bool:
    """Whether a process of this machine runs; True where that cannot be told."""
    if os.name != "posix" or not process.isdecimal():
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
