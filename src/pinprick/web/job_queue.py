"""One queue of jobs, and the one thread that works on a device.

Short questions, such as the logits of one image, come before waiting jobs, and between two passes
of a running one. Everything that touches a model runs in this thread, so no two passes meet.
"""

import secrets
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Literal, TypeVar

from pinprick.errors import BadInput, PinprickError, one_line

State = Literal["waiting", "running", "done", "stopped", "failed"]
Answer = TypeVar("Answer")

WAITING = 8  # jobs that wait at most
QUESTIONS = 16  # questions that wait at most
KEPT = 24  # jobs that are remembered, the last ones


class Busy(PinprickError):
    """More jobs or questions than are taken."""


class JobStopped(Exception):
    """Raised inside a job that has nothing to show when it is stopped."""


class Job(ABC):
    """Work that takes a while.

    Attributes:
        id: Names it in addresses; cannot be guessed.
        title: What it does, in words.
        state: How far it is.
        error: Why it failed, in one line.
        stopping: Whether it was asked to stop.
    """

    kind: str

    def __init__(self, title: str) -> None:
        self.id, self.title = secrets.token_hex(8), title
        self.state: State = "waiting"
        self.error = ""
        self.stopping = False
        self.started = self.ended = 0.0

    @abstractmethod
    def work(self) -> None:
        """Do it, in the thread of the device."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """What the browser shows of it, as JSON can hold it."""

    def stop(self) -> None:
        """Ask it to stop; called from any thread."""
        self.stopping = True

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "stopped", "failed")

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        if not self.started:
            return 0.0
        return (self.ended or time.monotonic()) - self.started

    def summary(self) -> dict[str, Any]:
        """A line in the list of jobs."""
        return {
            "id": self.id,
            "kind": self.kind,
            "title": self.title,
            "state": self.state,
            "error": self.error,
        }


class JobQueue:
    """The jobs of one device."""

    def __init__(self) -> None:
        self.jobs: OrderedDict[str, Job] = OrderedDict()
        self.version = 0  # grows whenever the list of jobs changes
        self._waiting: deque[Job] = deque()
        self._questions: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._change = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="pinprick jobs", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Add a job at the end; ``Busy`` if too many wait."""
        with self._change:
            if len(self._waiting) >= WAITING:
                raise Busy(f"{WAITING} jobs wait already; stop one or wait")
            self._waiting.append(job)
            self.jobs[job.id] = job
            over = [one.id for one in self.jobs.values() if one.is_over]
            for old in over[: max(0, len(self.jobs) - KEPT)]:
                del self.jobs[old]
            self._changed()

    def find(self, number: str) -> Job:
        """The job with this id."""
        job = self.jobs.get(number)
        if job is None:
            raise BadInput("there is no such job any more; start it again")
        return job

    def ask(self, question: Callable[[], Answer]) -> "Future[Answer]":
        """Have a short question answered in the thread of the device; ``Busy`` if too many wait."""
        future: Future[Answer] = Future()
        with self._change:
            if len(self._questions) >= QUESTIONS:
                raise Busy("too many questions at a time; wait a second")
            self._questions.append((future, question))
            self._change.notify()
        return future

    def stop(self, job: Job) -> None:
        """Stop a job: a waiting one at once, a running one after its current pass."""
        with self._change:
            if job in self._waiting:
                self._waiting.remove(job)
                job.state = "stopped"
                self._changed()
        job.stop()

    def answer_questions(self) -> None:
        """Answer what waits; called by the running job between two passes."""
        while self._questions:
            future, question = self._questions.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(question())
            except BaseException as error:
                future.set_exception(error)

    def list(self) -> list[dict[str, Any]]:
        """All jobs that are remembered, the latest first."""
        with self._change:
            waiting = list(self._waiting)
            jobs = list(self.jobs.values())
        ahead = {job.id: number for number, job in enumerate(waiting, start=1)}
        return [{**job.summary(), "waits": ahead.get(job.id, 0)} for job in reversed(jobs)]

    def close(self) -> None:
        """Stop everything and end the thread."""
        with self._change:
            self._closed = True
            self._waiting.clear()
            for job in self.jobs.values():
                job.stop()
            self._change.notify()
        self._thread.join(timeout=10)

    def _changed(self) -> None:
        self.version += 1
        self._change.notify()

    def _loop(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._closed or self._questions or self._waiting)
                if self._closed:
                    return
                job = self._waiting.popleft() if self._waiting and not self._questions else None
                if job is not None:
                    job.state, job.started = "running", time.monotonic()
                    self._changed()
            self.answer_questions()
            if job is not None:
                self._run(job)

    def _run(self, job: Job) -> None:
        state: State = "failed"
        try:
            job.work()
            state = "stopped" if job.stopping else "done"
        except JobStopped:
            state = "stopped"
        except PinprickError as error:
            job.error = one_line(error)
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            job.error = f"a bug: {type(error).__name__}: {one_line(error)}"[:300]
        with self._change:
            job.state, job.ended = state, time.monotonic()
            self._changed()
