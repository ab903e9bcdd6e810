"""Calls of a function with a timeout, in a thread of their own.

Python cannot end a thread. An abandoned call goes on until it ends by itself, or until the process
does, since its thread is a daemon. Its result is dropped.
"""

import contextvars
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import torch
from torch import Tensor

THREAD = "call of a score_model"
_MOST = 8  # abandoned calls still running, after which no more are made

Job = Callable[[], Any]


class TookTooLong(TimeoutError):
    """A call that was abandoned, or not made because too many abandoned ones still run."""


class Patience:
    """One function, and the seconds that a call may take; None for no limit.

    Threads are reused, since a function may store something per thread, such as a connection.
    """

    def __init__(self, function: Callable[[Tensor], Any], seconds: float | None) -> None:
        self._function, self._seconds = function, seconds
        self._idle: list[_Worker] = []
        self._hanging: list[_Worker] = []

    def __call__(self, images: Tensor) -> Any:
        """The result or the exception of the function, or ``TookTooLong``."""
        if self._seconds is None:
            return self._function(images)
        worker = self._worker()
        try:
            outcome = worker.run(_as_here(self._function, images), self._seconds)
        except BaseException:  # KeyboardInterrupt too
            worker.stop()
            self._hanging.append(worker)
            raise
        self._idle.append(worker)
        if not isinstance(outcome, _Raised):
            return outcome
        try:
            raise outcome.error
        finally:
            del outcome  # it holds the error, which holds this frame, and may hold a connection

    def check_room(self) -> None:
        """Raise ``TookTooLong`` where too many abandoned calls still run."""
        self._hanging = [worker for worker in self._hanging if worker.thread.is_alive()]
        if len(self._hanging) >= _MOST:
            raise TookTooLong(f"{_MOST} calls are still waiting for an answer")

    def _worker(self) -> "_Worker":
        while self._idle:
            worker = self._idle.pop()
            if worker.thread.is_alive():  # in a forked process it is not
                return worker
        worker = _Worker()
        weakref.finalize(self, worker.stop)
        return worker


@dataclass(frozen=True)
class _Raised:
    error: BaseException


class _Worker:
    """A thread that does one job after another."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._outcomes: SimpleQueue[Any] = SimpleQueue()
        self.thread = Thread(
            target=_work, args=(self._jobs, self._outcomes), name=THREAD, daemon=True
        )
        self.thread.start()

    def run(self, job: Job, seconds: float) -> Any:
        self._jobs.put(job)
        try:
            return self._outcomes.get(timeout=seconds)
        except Empty:
            raise TookTooLong(f"no answer within {seconds:g} s") from None

    def stop(self) -> None:
        """End the thread once it has nothing to do."""
        self._jobs.put(None)


def _work(jobs: SimpleQueue[Job | None], outcomes: SimpleQueue[Any]) -> None:
    while (job := jobs.get()) is not None:
        try:
            outcome = job()
        except BaseException as error:  # of any kind; it is raised in the caller
            outcome = _Raised(error)
        outcomes.put(outcome)
        del job, outcome  # so that they can be freed while waiting


def _as_here(function: Callable[[Tensor], Any], images: Tensor) -> Job:
    """The call with the caller's context and autograd modes, which are per thread."""
    context = contextvars.copy_context()
    grad, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    def job() -> Any:
        with torch.inference_mode(inference), torch.set_grad_enabled(grad):
            return context.run(function, images)

    return job
