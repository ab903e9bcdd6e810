"""Calls of a function that may fail for a while: made again after a pause, and not too often."""

import http.client
import time
from collections.abc import Callable
from typing import Any

from torch import Tensor

from pinprick.errors import NoAnswer

Temporary = tuple[type[Exception], ...] | Callable[[Exception], bool]

_LONGEST = 60.0  # seconds of a pause that the service did not ask for
_LATER = (408, 425, 429)  # HTTP's ways to say: try again


def is_temporary(error: Exception) -> bool:
    """Whether another try may help: troubles of the network, and HTTP errors that say so."""
    code = _status(error)
    if code is not None:
        return code in _LATER or code >= 500
    return isinstance(error, OSError | http.client.HTTPException)  # a timeout is an OSError


class Calls:
    """One function, called with patience.

    Attributes:
        name: What is called, for messages.
        requests: How often the function was called.
        images: With how many images in all.
        failures: How many of the calls failed.
    """

    def __init__(
        self,
        function: Callable[[Tensor], Any],
        *,
        name: str,
        retries: int,
        backoff: float,
        temporary: Temporary,
        per_second: float | None,
    ) -> None:
        self.name = name
        self.requests = self.images = self.failures = 0
        self._function = function
        self._retries, self._backoff, self._temporary = retries, backoff, temporary
        self._interval = 0.0 if per_second is None else 1 / per_second
        self._next = 0.0

    def __call__(self, images: Tensor) -> Any:
        """What the function gives, in the end."""
        for attempt in range(self._retries + 1):
            self._wait_for_turn()
            self.requests += 1
            self.images += len(images)
            try:
                return self._function(images)
            except Exception as error:
                self.failures += 1
                if not self._may_pass(error):
                    raise
                if attempt == self._retries:
                    reason = " ".join(str(error).split()) or type(error).__name__
                    raise NoAnswer(
                        f"{self.name} did not answer in {attempt + 1} tries (the last: {reason}); "
                        "what it answered before is kept where there is a cache"
                    ) from error
                pause = min(self._backoff * 2**attempt, _LONGEST)
                time.sleep(max(pause, _retry_after(error)))
        raise AssertionError("unreachable")

    def _may_pass(self, error: Exception) -> bool:
        if isinstance(self._temporary, tuple):
            return isinstance(error, self._temporary)
        return self._temporary(error)

    def _wait_for_turn(self) -> None:
        now = time.monotonic()
        if now < self._next:
            time.sleep(self._next - now)
        self._next = max(now, self._next) + self._interval


def _status(error: Exception) -> int | None:
    """The HTTP status, where urllib's errors and those of requests and httpx have it."""
    response = getattr(error, "response", None)
    for holder, field in ((error, "code"), (response, "status_code")):
        code = getattr(holder, field, None)
        if isinstance(code, int):
            return code
    return None


def _retry_after(error: Exception) -> float:
    """Seconds that the service asks for; 0 if it does not say."""
    for holder in (error, getattr(error, "response", None)):
        headers = getattr(holder, "headers", None)
        text = headers.get("Retry-After") if headers is not None else None
        if isinstance(text, str) and text.strip().isdecimal():
            return float(text)
    return 0.0
