"""Server-sent events: the list of jobs when it changes, and the steps of running ones as they come.

State is read, never pushed, so a job does not wait for a browser. Every stream begins with all
there is, so a page that is reloaded or that comes later knows as much as any other.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from pinprick.web.attack_job import AttackJob
from pinprick.web.job_queue import JobQueue

STREAMS = 16  # browsers that listen at most
_EVERY = 0.2  # seconds between two looks at the jobs
_AT_LEAST = 0.4  # seconds after which the time of a running job is told, whatever it does
_SILENCE = 15.0  # seconds after which an empty line shows that the server is there


class EventStreams:
    """One stream per page that listens."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._open = 0

    async def answer(self, request: Request) -> Response:
        """A stream, unless too many are open."""
        if self._open >= STREAMS:
            return JSONResponse({"error": "too many pages are open"}, status_code=429)
        return StreamingResponse(self._events(request), media_type="text/event-stream")

    async def _events(self, request: Request) -> AsyncGenerator[str, None]:
        self._open += 1
        version, sent, quiet = -1, dict[str, tuple[int, int, int]](), 0.0
        try:
            while not await request.is_disconnected():
                lines = []
                for job in list(self._queue.jobs.values()):
                    if isinstance(job, AttackJob) and (event := _progress(job, sent)):
                        lines.append(_event("progress", event))
                if version != self._queue.version:
                    version = self._queue.version
                    lines.append(_event("jobs", self._queue.list()))
                quiet = 0.0 if lines else quiet + _EVERY
                if quiet > _SILENCE:
                    lines, quiet = [": still here\n\n"], 0.0
                for line in lines:
                    yield line
                await asyncio.sleep(_EVERY)
        finally:
            self._open -= 1


def _progress(job: AttackJob, sent: dict[str, tuple[int, int, int]]) -> dict[str, Any] | None:
    """What is new about an attack since it was last ``sent``; None if nothing is."""
    if job.trace is None:
        return None
    steps = job.trace.steps
    last = sent.get(job.id, (-1, -1, -1))[0]
    now = (steps[-1].number if steps else -1, job.trace.forwards, int(job.seconds / _AT_LEAST))
    if now == sent.get(job.id):
        return None
    sent[job.id] = now
    return {
        "id": job.id,
        "forwards": job.trace.forwards,
        "backwards": job.trace.backwards,
        "seconds": round(job.seconds, 2),
        "steps": [step.plain() for step in steps if step.number > last],
    }


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data, allow_nan=False)}\n\n"
