"""Forked processes: workers that share a list of tasks, and a child that is watched."""

import ctypes
import json
import multiprocessing
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

Send = Callable[[dict[str, Any]], None]


MEMORY = 8 << 30  # bytes that a watched process may take, as a mutant may ask for any number
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl


def fork() -> int:
    """A fork that ends when its parent does, however that ends."""
    with warnings.catch_warnings():  # Python 3.12 warns of threads, of which the child needs none
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0 and sys.platform == "linux":
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
    return pid


def spread(
    count: int, work: Callable[[int], dict[str, Any]], jobs: int
) -> Iterator[dict[str, Any]]:
    """Calls ``work`` with 0 to ``count - 1`` in ``jobs`` processes. Yields results as they come."""
    context = multiprocessing.get_context("fork")
    following, writing = context.Value("i", 0), context.Lock()
    read, write = os.pipe()
    workers = []
    for _ in range(min(jobs, count)):
        if pid := fork():
            workers.append(pid)
            continue
        status = 1
        try:
            os.close(read)
            with os.fdopen(write, "w") as pipe:
                while True:
                    with following.get_lock():
                        number = following.value
                        following.value += 1
                    if number >= count:
                        break
                    line = json.dumps(work(number))
                    with writing:
                        print(line, file=pipe, flush=True)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as lines:
        yield from map(json.loads, lines)
    if any([os.waitpid(pid, 0)[1] for pid in workers]):
        raise RuntimeError("a worker process failed: see above")


class Child:
    """A forked process that sends messages. It has its own temporary folder and prints nothing."""

    def __init__(self, work: Callable[[Send], None]) -> None:
        self.folder = tempfile.mkdtemp(prefix="mutant-")
        self.waiting = b""
        self.read, write = os.pipe()
        self.pid = fork()
        if self.pid == 0:
            try:
                os.setsid()
                hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
                resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, hard))
                os.close(self.read)
                nothing = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(nothing, stream)
                os.environ["TMPDIR"] = tempfile.tempdir = self.folder
                work(lambda message: _write_all(write, json.dumps(message).encode() + b"\n"))
            finally:
                os._exit(0)
        os.close(write)

    def receive(self, until: float) -> dict[str, Any] | None:
        """The next message, or None once the process has ended.

        Raises:
            TimeoutError: No message arrived before the clock showed ``until``.
        """
        while b"\n" not in self.waiting:
            seconds = max(0.0, until - time.monotonic())
            if not select.select([self.read], [], [], seconds)[0]:
                raise TimeoutError
            if not (more := os.read(self.read, 1 << 16)):
                return None
            self.waiting += more
        line, self.waiting = self.waiting.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.read)
        shutil.rmtree(self.folder, ignore_errors=True)


def _write_all(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]
