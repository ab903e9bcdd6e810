"""The engine ``ray``: the cells of a plan on all machines of a Ray cluster.

Each cell is a task that Ray never retries by itself. Ray would retry a task without limit where its
memory monitor killed the worker. Here a death is reported, and the run counts the tries.
"""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

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
from pinprick.errors import BadInput, MissingExtra, first_sentence
from pinprick.freed_memory import keep_freed_memory


class RayWorkers:
    """Tasks on a Ray cluster, at most as many as its machines have room for.

    The cluster is the one that is connected already, the one that ``RAY_ADDRESS`` names, or the one
    that runs on this machine. If there is none, a cluster of this machine alone is started.

    Args:
        work: What runs a cell. Each process of the cluster loads it once.
        count: Most cells at a time; None for as many as the cluster has room for.
        share: What each task gets.
    """

    def __init__(self, work: Work, *, count: int | None, share: Share) -> None:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise MissingExtra("the engine ray", "ray", "ray") from error
        self._ray: Any = ray
        self._count, self._share = count, share
        self._tasks: dict[Any, tuple[Cell, str]] = {}  # by Ray's reference: the cell and its node
        self._connected_here = not ray.is_initialized()
        if self._connected_here:
            _connect(ray)
        self._task: Any = ray.remote(
            num_cpus=share.threads, num_gpus=int(share.device == "cuda"), max_retries=0
        )(_task(work))

    def has_room(self) -> bool:
        most = sum(self._room().values())
        return len(self._tasks) < (most if self._count is None else min(most, self._count))

    def start(self, cell: Cell, *, avoid: str = "") -> str:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        room, names = self._room(), self._names()
        used = Counter(node for _, node in self._tasks.values())
        node = max(room, key=lambda one: (names[one] != avoid, room[one] - used[one]))
        where = NodeAffinitySchedulingStrategy(node, soft=True)  # elsewhere if the node is gone
        task = self._task.options(scheduling_strategy=where).remote(cell)
        self._tasks[task] = (cell, node)
        return names[node]

    def wait(self, seconds: float) -> Sequence[Outcome]:
        ready, _ = self._ray.wait(list(self._tasks), timeout=seconds)
        return [self._outcome(task, self._tasks.pop(task)[0]) for task in ready]

    def close(self) -> None:
        for task in self._tasks:
            with suppress(Exception):  # the cluster may be gone
                self._ray.cancel(task, force=True)
        self._tasks.clear()
        if self._connected_here:
            self._ray.shutdown()

    def _outcome(self, task: Any, cell: Cell) -> Outcome:
        try:
            outcome = self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:  # raised before the work began
            reason = str(error.cause).strip().splitlines()[-1]  # the rest is a traceback
            raise BadInput(f"a worker of Ray cannot load the work: {reason}") from error
        except self._ray.exceptions.OutOfMemoryError:
            return Died(cell, "was killed by Ray's memory monitor: its machine ran out of memory")
        except self._ray.exceptions.RayError as error:
            return Died(cell, f"died: {first_sentence(error)}")
        assert isinstance(outcome, Done | Raised | Refused)
        return outcome

    def _room(self) -> dict[str, int]:
        """Cells that fit on each living node at a time, by its id."""
        gpu = self._share.device == "cuda"
        name, each = ("GPU", 1) if gpu else ("CPU", self._share.threads)
        fitting = {
            node["NodeID"]: int(node["Resources"].get(name, 0)) // each
            for node in self._ray.nodes()
            if node["Alive"]
        }
        room = {node: count for node, count in fitting.items() if count}
        if not room:
            raise BadInput(f"no machine of the Ray cluster has {each} {name} for a cell")
        return room

    def _names(self) -> dict[str, str]:
        """The name of each node; with the start of its id where two have the same name."""
        names = {node["NodeID"]: node["NodeManagerHostname"] for node in self._ray.nodes()}
        number = Counter(names.values())
        return {
            node: name if number[name] == 1 else f"{name} ({node[:6]})"
            for node, name in names.items()
        }


def _task(work: Work) -> Callable[[Cell], Done | Raised | Refused]:
    """The function that Ray sends to each process once, and with it the work and what it holds."""

    def run(cell: Cell) -> Done | Raised | Refused:
        keep_freed_memory()
        return attempt(work, cell)

    return run


def _connect(ray: Any) -> None:
    with _own_signals():
        try:
            ray.init(log_to_driver=False, include_dashboard=False, logging_level="WARNING")
        except (ConnectionError, OSError, RuntimeError) as error:
            address = os.environ.get("RAY_ADDRESS", "")
            raise BadInput(
                f"no connection to the Ray cluster {address}: {first_sentence(error)}"
            ) from error


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep what SIGTERM does here; Ray sets its own way to end."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if before is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)
