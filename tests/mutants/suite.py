"""Which tests reach which mutant, and whether they catch it."""

import gc
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from mutants.forks import Child, Send, spread
from mutants.switch import Switch

OPTIONS = (
    "-q", "-s", "--rootdir", ".", "-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:xdist",
    "-p", "no:cov", "--strict-markers", "--continue-on-collection-errors",
)  # fmt: skip
LONGEST = 600.0  # seconds for one test without a mutant, and for collecting the tests
HANG_FACTOR, HANG_LEAST = 10.0, 5.0  # a test hangs after 10 times its usual time, and 5 seconds


@dataclass(frozen=True)
class Test:
    """One test as it ran without a mutant. Negative numbers in ``reached`` are files."""

    __test__ = False
    id: str
    seconds: float
    passed: bool
    reached: frozenset[int]


class Loop:
    """A pytest plugin: pytest collects the tests, then ``loop`` decides which of them run."""

    def __init__(self, loop: Callable[["Loop", dict[str, pytest.Item]], None]) -> None:
        self.loop = loop
        self.started = False
        self.broken = False
        self.failure: str | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.started, self.broken = True, session.testsfailed > 0
        gc.freeze()  # otherwise a collection in a fork copies all memory
        self.loop(self, {item.nodeid: item for item in session.items})
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failure is None:
            self.failure = report.longreprtext.strip().splitlines()[-1][:200]

    def run(self, item: pytest.Item, following: pytest.Item | None = None) -> str | None:
        """Runs one test. Returns the last line of its failure, or None if it passed."""
        self.failure = None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return self.failure


def map_tests(
    loop: Loop, items: dict[str, pytest.Item], switch: Switch, jobs: int
) -> Iterator[Test]:
    """Runs every test without a mutant, each in a fresh process, and records what it reaches.

    A fresh process, because a test that finds a cache or fixture filled would seem to reach less.
    """
    chosen = list(items.values())

    def alone(number: int) -> dict[str, Any]:
        item = chosen[number]

        def work(send: Send) -> None:
            switch.reached.clear()
            start = time.monotonic()
            failure = loop.run(item)
            seconds = time.monotonic() - start
            send({"seconds": seconds, "failure": failure, "reached": sorted(switch.reached)})

        child = Child(work)
        try:
            answer = child.receive(time.monotonic() + LONGEST)
        except TimeoutError:
            answer = None
        finally:
            child.end()
        ended = {"seconds": 0.0, "failure": "no answer", "reached": []}
        return {"id": item.nodeid, **(answer or ended)}

    for done, line in enumerate(spread(len(chosen), alone, jobs), start=1):
        if line["failure"] is not None:
            print(f"fails without a mutant: {line['id']}: {line['failure']}", file=sys.stderr)
        if done % 200 == 0 or done == len(chosen):
            print(f"mapped {done} of {len(chosen)} tests", file=sys.stderr)
        reached = frozenset(line["reached"])
        yield Test(line["id"], line["seconds"], line["failure"] is None, reached)


def best_first(tests: Sequence[Test]) -> list[Test]:
    """The tests in order of promise: quick and specific first, and each function early once."""

    def cost(test: Test) -> float:
        return max(test.seconds, 0.01) * (1 + len(test.reached))

    earlier: Counter[str] = Counter()
    order = []
    for test in sorted(tests, key=cost):
        name = test.id.partition("[")[0]
        order.append((earlier[name].bit_length(), cost(test), test))
        earlier[name] += 1
    return [test for *_, test in sorted(order, key=lambda one: one[:2])]


def tests_for(number: int, mark: int, tests: Sequence[Test], *, at_import: bool) -> list[Test]:
    """The tests that reach a mutant. If it acts on import: also those that use its file."""
    marks = {number, mark} if at_import else {number}
    return best_first([test for test in tests if test.passed and marks & test.reached])


def judge(
    run: Callable[[Sequence[Test], Send], None], tests: Sequence[Test], limit: float
) -> dict[str, Any]:
    """Runs the tests until one catches the mutant or ``limit`` seconds are over.

    A test that fails runs again in a process of its own. If it passes there, the failure came from
    an earlier test and the next tests run.
    """
    start = time.monotonic()
    answer = _watch(run, tests, limit)
    left = list(tests)
    while answer["outcome"] == "caught" and answer["why"] == "failed":
        at = next(i for i, test in enumerate(left) if test.id == answer["by"])
        if at == 0 or _watch(run, [left[at]], limit)["outcome"] == "caught":
            break
        left = left[at + 1 :]
        answer = _watch(run, left, limit - (time.monotonic() - start))
    return {**answer, "seconds": round(time.monotonic() - start, 2), "tests": len(tests)}


def _watch(
    run: Callable[[Sequence[Test], Send], None], tests: Sequence[Test], limit: float
) -> dict[str, Any]:
    child = Child(lambda send: run(tests, send))
    end = hang = time.monotonic() + LONGEST
    at = -1
    try:
        while True:
            message = child.receive(min(end, hang))
            if message is None:
                by = tests[at].id if at >= 0 else ""
                return {"outcome": "caught", "why": "process ended", "by": by}
            if "outcome" in message:
                return message
            if at < 0:
                end = time.monotonic() + limit
            at = message["test"]
            hang = time.monotonic() + max(HANG_FACTOR * tests[at].seconds, HANG_LEAST)
    except TimeoutError:
        if at < 0:
            return {"outcome": "caught", "why": "hang", "by": ""}
        if hang < end:
            return {"outcome": "caught", "why": "hang", "by": tests[at].id}
        return {"outcome": "cut off", "ran": at}
    finally:
        child.end()


def run_until_caught(
    loop: Loop, items: dict[str, pytest.Item], tests: Sequence[Test], send: Send
) -> None:
    """Runs the tests in order until one fails, and sends the outcome."""
    there = [(at, items[test.id]) for at, test in enumerate(tests) if test.id in items]
    for (at, item), (_, following) in zip(there, [*there[1:], (0, None)], strict=True):
        send({"test": at})
        failure = loop.run(item, following)
        if failure is not None:
            send({"outcome": "caught", "why": "failed", "by": item.nodeid, "failure": failure})
            return
    send({"outcome": "survived"})


def run_from_import(tests: Sequence[Test], send: Send) -> None:
    """Collects the tests with the mutant active, then runs them: for mutants that act on import."""

    def run(loop: Loop, items: dict[str, pytest.Item]) -> None:
        if not loop.broken:
            run_until_caught(loop, items, tests, send)

    loop = Loop(run)
    files = sorted({test.id.partition("::")[0] for test in tests})
    pytest.main([*OPTIONS, *files], plugins=[loop])
    if not loop.started or loop.broken:
        send({"outcome": "caught", "why": "import", "by": ""})
