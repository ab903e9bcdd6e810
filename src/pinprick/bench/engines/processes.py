"""The engine ``processes``: one process per GPU or CPU core of this machine.

Processes are spawned, so that none inherits a half-used GPU or a lock. A process serves many cells,
and a new one replaces it when it dies. No process outlives the run, however the run ends.
"""

import os
import pickle
import signal
import threading
from collections.abc import Mapping, Sequence
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection

from pinprick.bench.cell import Cell
from pinprick.bench.engines.workers import (
    Died,
    Done,
    Outcome,
    Raised,
    Refused,
    Share,
    Work,
    attempt,
)
from pinprick.errors import BadInput, one_line
from pinprick.freed_memory import keep_freed_memory

_READY = "ready"  # the first message of a worker
_ENDING = 5.0  # seconds that a process gets to end after its pipe has closed


class Processes:
    """Worker processes on this machine.

    Args:
        work: What runs a cell. It is sent to each process once.
        count: Number of processes; None for one per GPU or per ``threads`` CPU cores.
        share: What each process gets.
    """

    def __init__(self, work: Work, *, count: int | None, share: Share) -> None:
        self._share = share
        self._gpus = _gpus() if share.device == "cuda" else []
        try:
            self._work = pickle.dumps(work)
        except Exception as error:
            raise BadInput(f"the work cannot be sent to a process: {one_line(error)}") from error
        fitting = count or len(self._gpus) or max(1, _cores() // share.threads)
        self._slots: list[_Worker | None] = [None] * fitting
        self._started_once = False

    def has_room(self) -> bool:
        return any(worker is None or worker.cell is None for worker in self._slots)

    def start(self, cell: Cell, *, avoid: str = "") -> str:
        idle = [i for i, worker in enumerate(self._slots) if worker is None or worker.cell is None]
        idle.sort(key=lambda i: (self._name(i) == avoid, self._slots[i] is None))
        slot = idle[0]
        worker = self._slots[slot]
        if worker is None or not worker.give(cell):
            worker = self._slots[slot] = _Worker(self._work, self._environment(slot))
            worker.give(cell)
        return self._name(slot)

    def wait(self, seconds: float) -> Sequence[Outcome]:
        busy = {
            worker.pipe: slot
            for slot, worker in enumerate(self._slots)
            if worker is not None and worker.cell is not None
        }
        ready = connection.wait(list(busy), seconds)
        ended = []
        for pipe, slot in busy.items():
            worker = self._slots[slot]
            assert worker is not None
            outcome = worker.hear(readable=pipe in ready)
            self._started_once |= worker.ready
            if isinstance(outcome, Died):
                self._slots[slot] = None
                if not self._started_once:
                    raise BadInput(
                        f"a worker process {outcome.reason} before its first cell; a script that "
                        'runs cells must do so under: if __name__ == "__main__":'
                    )
            elif outcome is not None and self._share.device == "cuda" and _failed(outcome):
                worker.kill()  # after some errors of CUDA all further cells would fail
                self._slots[slot] = None
            if outcome is not None:
                ended.append(outcome)
        return ended

    def close(self) -> None:
        for worker in self._slots:
            if worker is not None:
                worker.kill()
        self._slots = [None] * len(self._slots)

    def _name(self, slot: int) -> str:
        return f"{'GPU' if self._gpus else 'process'} {slot + 1}"

    def _environment(self, slot: int) -> dict[str, str]:
        threads = str(self._share.threads)
        variables = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        if self._gpus:
            variables["CUDA_VISIBLE_DEVICES"] = self._gpus[slot % len(self._gpus)]
        return variables


class _Worker:
    """A process, its pipe, and the cell that it works on."""

    def __init__(self, work: bytes, environment: Mapping[str, str]) -> None:
        context = get_context("spawn")
        self.pipe, other = context.Pipe()
        self.cell: Cell | None = None
        self.ready = False
        self._process = context.Process(
            target=_serve, args=(other, work, dict(environment)), daemon=True
        )
        self._process.start()
        other.close()  # so that the pipe ends with the process

    def give(self, cell: Cell) -> bool:
        """Send a cell to the process; False if it has died meanwhile."""
        try:
            self.pipe.send(cell)
        except OSError:
            self.kill()
            return False
        self.cell = cell
        return True

    def hear(self, *, readable: bool) -> Outcome | None:
        """What came of the cell, or None if the process is still busy."""
        assert self.cell is not None
        if not readable and self._process.exitcode is None:
            return None
        try:
            message = self.pipe.recv() if readable or self.pipe.poll() else None
        except (EOFError, OSError):
            message = None
        if message == _READY:
            self.ready = True
            return None
        if isinstance(message, BadInput):
            raise message
        if message is None:
            self._process.join(_ENDING)
            cell, reason = self.cell, _end_in_words(self._process.exitcode)
            self.kill()
            return Died(cell, reason)
        self.cell = None
        assert isinstance(message, Done | Raised | Refused)
        return message

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self.pipe.close()
        self.cell = None


def _serve(pipe: "Connection[object, object]", pickled: bytes, variables: dict[str, str]) -> None:
    """What a worker process does: run the cells that come through the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the run, which ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.update(variables)  # before the work imports torch
    keep_freed_memory()
    try:
        work: Work = pickle.loads(pickled)
    except Exception as error:
        pipe.send(BadInput(f"a worker process cannot load the work: {one_line(error)}"))
        return
    pipe.send(_READY)
    while True:
        try:
            cell = pipe.recv()
        except EOFError:
            return
        assert isinstance(cell, Cell)
        pipe.send(attempt(work, cell))


def _end_with_parent() -> None:
    """End this process at once when the run has died, also in the middle of a cell."""
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _failed(outcome: Done | Raised | Refused) -> bool:
    return not isinstance(outcome, Done) or outcome.failed


def _end_in_words(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended with status {status}"
    name = signal.Signals(-status).name
    memory = ", perhaps for lack of memory" if name == "SIGKILL" else ""
    return f"was killed by {name}{memory}"


def _gpus() -> list[str]:
    """The GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them."""
    import torch

    chosen = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    found = chosen or [str(number) for number in range(torch.cuda.device_count())]
    if not found:
        raise BadInput("these cells need a GPU, and this machine has none that can be used")
    return found


def _cores() -> int:
    from pinprick.threads import available_cores

    return available_cores()
