"""Calls of a function that may fail temporarily: retried after a pause, at a limited rate.

A call is retried for the images that still lack a usable answer. Images that lack one in the end
are sent once more, each alone, so that an image which the service cannot handle does not block the
others. An error that is not the service's is raised. So is one that a retry does not help, such as
a rejected key, as long as there has been no answer.
"""

import http.client
import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from torch import Tensor

from pinprick.errors import BadInput, one_line
from pinprick.scores.patience import Patience, TookTooLong

Temporary = tuple[type[Exception], ...] | Callable[[Exception], bool]

# Processes the answers for some of the images; returns why some of them were not usable.
Take = Callable[[Any, Sequence[int]], dict[int, str]]

_LONGEST = 60.0  # seconds of a pause that the service did not request
_LONGEST_ASKED = 600.0  # seconds of one that it did
_DOUBLINGS = 30  # of a pause; by then it has reached its longest
_LATER = (408, 425, 429)  # HTTP statuses that mean: retry
_BROKEN = (  # a timeout is an OSError
    OSError,
    http.client.HTTPException,
    json.JSONDecodeError,
    UnicodeDecodeError,
)
_DOWN = 3  # consecutive images without an answer after which no more are tried


class BadAnswer(BadInput):
    """An answer of the wrong form."""


def is_temporary(error: Exception) -> bool:
    """Whether a retry may help: network errors, and HTTP errors that say so."""
    code = _status(error)
    if code is not None:
        return code in _LATER or code >= 500
    return _is_of_the_network(error)


class Calls:
    """One function, called with retries and a rate limit.

    Attributes:
        name: Name of the service, for messages.
        requests: Number of calls.
        images: Number of images in all calls.
        failures: Number of calls that failed, or left an image without a usable answer.
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
        timeout: float | None,
    ) -> None:
        self.name = name
        self.requests = self.images = self.failures = 0
        self._function = Patience(function, timeout)
        self._retries, self._backoff, self._temporary = retries, backoff, temporary
        self._interval = 0.0 if per_second is None else 1 / per_second
        self._next = 0.0
        self._proven = False  # there has been a good answer

    def __call__(self, images: Tensor, take: Take) -> dict[int, str]:
        """Call until all answers are processed; returns why some images have none, by row."""
        left: Sequence[int] = range(len(images))
        tries = 0
        reasons: dict[int, str] = {}
        for attempt in range(self._retries + 1):
            reasons, wait = self._try(images, left, take)
            tries, left = tries + 1, list(reasons)
            if not left or wait is None:
                break
            if attempt < self._retries:
                pause = self._backoff * 2 ** min(attempt, _DOUBLINGS)
                time.sleep(max(wait, min(pause, _LONGEST)))
        if len(left) > 1:
            reasons, tries = self._one_by_one(images, reasons, take), tries + 1
        many = f"{tries} tries" if tries > 1 else "one try"
        return {
            place: f"{self.name} did not answer in {many} (the last: {reason})"
            for place, reason in reasons.items()
        }

    def _one_by_one(self, images: Tensor, reasons: dict[int, str], take: Take) -> dict[int, str]:
        """Each image alone, once, unless the first few show that the service is down."""
        left: dict[int, str] = {}
        for number, (place, before) in enumerate(reasons.items()):
            down = number == len(left) >= _DOWN
            left |= {place: before} if down else self._try(images, [place], take)[0]
        return left

    def _try(
        self, images: Tensor, places: Sequence[int], take: Take
    ) -> tuple[dict[int, str], float | None]:
        """Why some of the images have no answer after one call, and the least seconds to wait.

        The seconds are None where a retry cannot help.
        """
        try:
            self._function.check_room()
        except TookTooLong as error:
            return dict.fromkeys(places, str(error)), None
        self._wait_for_turn()
        self.requests += 1
        self.images += len(places)
        try:
            reasons = take(self._function(images[list(places)]), places)
        except Exception as error:
            self.failures += 1
            if not (self._may_pass(error) or (self._proven and _is_the_services(error))):
                raise
            reason = one_line(error)
            wait = _retry_after(error) if self._may_pass(error) else None
            return dict.fromkeys(places, reason), wait
        self.failures += bool(reasons)
        self._proven = True
        return reasons, 0.0

    def _may_pass(self, error: Exception) -> bool:
        """Whether a retry may help."""
        if isinstance(error, BadAnswer | TookTooLong):
            return True
        if isinstance(self._temporary, tuple):
            return isinstance(error, self._temporary)
        return self._temporary(error)

    def _wait_for_turn(self) -> None:
        now = time.monotonic()
        if now < self._next:
            time.sleep(self._next - now)
        self._next = max(now, self._next) + self._interval


def _is_the_services(error: Exception) -> bool:
    """Whether the service or the network failed, and not the function that calls it."""
    return _is_of_the_network(error) or _status(error) is not None


def _is_of_the_network(error: Exception) -> bool:
    """Whether there was no answer, or one that is not JSON, such as the page of a gateway."""
    if isinstance(error, _BROKEN):
        return True
    kinds = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(error).__mro__]
    return ("httpx", "TransportError") in kinds  # its timeouts are no OSErrors


def _status(error: Exception) -> int | None:
    """The HTTP status of an error of urllib, requests or httpx; None if it has none."""
    response = getattr(error, "response", None)
    for holder, field in ((error, "code"), (response, "status_code")):
        code = getattr(holder, field, None)
        if isinstance(code, int):
            return code
    return None


def _retry_after(error: Exception) -> float:
    """Seconds that the service requests, within bounds; 0 if it requests none."""
    for holder in (error, getattr(error, "response", None)):
        get = getattr(getattr(holder, "headers", None), "get", None)
        said = get("Retry-After") if callable(get) else None
        if isinstance(said, int | str):
            text = str(said).strip()
            seconds = float(text) if text.isdecimal() else _seconds_until(text)
            return min(max(0.0, seconds), _LONGEST_ASKED)
    return 0.0


def _seconds_until(date: str) -> float:
    """Seconds from now to an HTTP date; 0 if it is not a date."""
    try:
        then = parsedate_to_datetime(date)
        # a zone of -0000 comes back as none
        return (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp() - time.time()
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
