"""A call that never ends is given up, and whatever a service says, the pauses are bounded."""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import BadInput, NoAnswer, score_model
from pinprick.oracle import exact_images
from pinprick.scores.patience import THREAD, Patience

WAIT = 0.05


@pytest.fixture
def images() -> Tensor:
    return exact_images(4, (3, 4, 4))


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What hanging calls wait for; set at the end, so that no thread outlives its test."""
    event = threading.Event()
    yield event
    event.set()


def callers(wanted: int) -> int:
    """How many threads make calls; there may be more for a moment, until they have ended."""
    deadline = time.perf_counter() + 5
    while True:
        gc.collect()
        count = sum(thread.name == THREAD for thread in threading.enumerate())
        if count == wanted or time.perf_counter() > deadline:
            return count


def means(some: Tensor) -> Tensor:
    return some.mean(dim=(2, 3))


def hanging(release: threading.Event, times: int) -> Callable[[Tensor], Tensor]:
    """Never answers the first so many calls, as long as it is not released."""
    calls: list[int] = []

    def ask(some: Tensor) -> Tensor:
        calls.append(len(some))
        if len(calls) <= times:
            release.wait(60)
        return means(some)

    return ask


def test_a_call_that_hangs_is_given_up_and_made_again(
    images: Tensor, release: threading.Event
) -> None:
    model = score_model(hanging(release, 1), name="slow", timeout=WAIT, backoff=0.0)
    start = time.perf_counter()
    torch.testing.assert_close(model(images), means(images), rtol=0, atol=1e-6)
    assert time.perf_counter() - start < 5
    assert (model.sent.requests, model.sent.failures) == (2, 1)


@pytest.mark.parametrize("temporary", [None, (KeyError,)])
def test_a_service_that_never_answers_is_one_line(
    images: Tensor, release: threading.Event, temporary: Any
) -> None:
    """Also where the caller's own list of temporary errors lacks timeouts."""
    options: dict[str, Any] = {} if temporary is None else {"temporary": temporary}
    model = score_model(
        hanging(release, 99), name="slow", timeout=WAIT, backoff=0.0, retries=1, **options
    )
    with pytest.raises(NoAnswer, match=r"^slow did not answer in 2 tries .*within 0.05 s"):
        model(images[:1])


def test_calls_that_hang_do_not_pile_up(images: Tensor, release: threading.Event) -> None:
    """After a few, nothing is sent until one of them ends."""
    assert callers(0) == 0
    model = score_model(
        hanging(release, 99), name="slow", timeout=0.01, backoff=0.0, retries=30, max_batch=1
    )
    with pytest.raises(NoAnswer, match="8 calls are still waiting for an answer"):
        model(images[:1])
    assert callers(8) == 8
    assert model.sent.requests == 8
    release.set()
    assert callers(0) == 0
    model(images[:1])


def test_threads_of_calls_end_with_the_model(images: Tensor) -> None:
    assert callers(0) == 0
    model = score_model(means, name="quick")
    model(images)
    model(images * 0.5)  # by the same thread
    assert callers(1) == 1
    del model
    assert callers(0) == 0


def test_without_a_timeout_the_callers_thread_is_used(images: Tensor) -> None:
    seen = []

    def ask(some: Tensor) -> Tensor:
        seen.append(threading.current_thread())
        return means(some)

    score_model(ask, name="here", timeout=None)(images)
    score_model(ask, name="there", timeout=5.0)(images)
    assert seen[0] is threading.main_thread()
    assert seen[1] is not threading.main_thread()
    assert seen[1].daemon  # the process can end while it hangs


def test_a_thread_has_the_modes_of_its_caller() -> None:
    def modes() -> tuple[bool, bool]:
        return torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    patience = Patience(lambda _: modes(), 5.0)
    for context in (torch.no_grad(), torch.enable_grad(), torch.inference_mode()):
        with context:
            assert patience(torch.zeros(1)) == modes()


def test_what_the_function_raises_is_raised_as_it_is() -> None:
    def leave(some: Tensor) -> Tensor:
        raise SystemExit(7)

    with pytest.raises(SystemExit, match="7"):
        Patience(leave, 5.0)(torch.zeros(1))


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan"), float("inf")])
def test_a_timeout_is_seconds_above_zero(timeout: float) -> None:
    with pytest.raises(BadInput, match="timeout must be seconds above 0, or None"):
        score_model(means, name="slow", timeout=timeout)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time stands still but for pauses, which are written down."""
    taken: list[float] = []
    monkeypatch.setattr(time, "sleep", taken.append)
    monkeypatch.setattr(time, "monotonic", lambda: sum(taken))
    return taken


@pytest.mark.parametrize(
    ("said", "pause"),
    [
        ("9" * 400, 600),
        ("100000", 600),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 600),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 600),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0.5),
        ("Mon, 99 Foo 2020", 0.5),
        ("", 0.5),
        ("\x00", 0.5),
        ("²", 0.5),
        ("-5", 0.5),
        (30, 30),
        (b"30", 0.5),
        (None, 0.5),
    ],
)
def test_whatever_retry_after_says_the_pause_is_bounded(
    images: Tensor, pauses: list[float], said: Any, pause: float
) -> None:
    class Busy(Exception):
        code, headers = 503, {"Retry-After": said}

    troubles = [Busy()]

    def ask(some: Tensor) -> Tensor:
        if troubles:
            raise troubles.pop()
        return means(some)

    score_model(ask, name="busy", backoff=0.5)(images)
    assert pauses == [pause]


def test_headers_that_are_none_are_no_headers(images: Tensor, pauses: list[float]) -> None:
    class Busy(Exception):
        code, headers = 503, ("Retry-After", "7")

    troubles = [Busy()]

    def ask(some: Tensor) -> Tensor:
        if troubles:
            raise troubles.pop()
        return means(some)

    score_model(ask, name="busy", backoff=0.5)(images)
    assert pauses == [0.5]


def test_any_number_of_retries_is_possible(images: Tensor, pauses: list[float]) -> None:
    def ask(some: Tensor) -> Tensor:
        raise TimeoutError

    with pytest.raises(NoAnswer, match="1101 tries"):
        score_model(ask, name="down", retries=1100)(images[:1])
    assert max(pauses) == 60


@pytest.mark.parametrize(
    "options",
    [
        {"per_second": 1e-320},
        {"per_second": float("nan")},
        {"per_second": float("inf")},
        {"backoff": float("nan")},
        {"backoff": float("inf")},
    ],
)
def test_numbers_that_no_clock_takes_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=f"{next(iter(options))} must be"):
        score_model(means, name="odd", **options)


def test_a_bad_first_answer_is_asked_for_again(images: Tensor, pauses: list[float]) -> None:
    answers: list[Any] = ["starting up", torch.zeros(3, 3), torch.full((4, 3), torch.nan)]

    def ask(some: Tensor) -> Any:
        return answers.pop(0) if answers else means(some)

    model = score_model(ask, name="cold", backoff=0.5)
    torch.testing.assert_close(model(images), means(images), rtol=0, atol=1e-6)
    assert pauses == [0.5, 1, 2]
    assert model.sent.failures == 3
