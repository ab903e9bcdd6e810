"""A process that dies at a chosen file operation, for tests of what it leaves behind."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

OPERATIONS = ("replace", "rename", "unlink", "remove", "rmdir", "mkdir", "chmod", "open", "fsync")


class KilledError(BaseException):
    """Stands for the end of the process: nothing on the way out may handle it."""


class Killer:
    """Counts operations on files, and lets none happen from the chosen one on.

    What runs on the way out, such as a ``finally`` that removes a file, fails as well: a process
    that is killed cleans nothing up.
    """

    def __init__(self, at: int | None = None) -> None:
        self.at, self.count = at, 0

    def watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.at is not None and self.count >= self.at:
                raise KilledError
            return call(*args, **kwargs)

        return instead


@contextmanager
def killed_at(at: int | None, *more: tuple[Any, str]) -> Iterator[Killer]:
    """While the ``at``-th operation on a file, and all after it, fail; ``more`` are counted too."""
    killer = Killer(at)
    with pytest.MonkeyPatch.context() as patch:
        homes = [*((os, name) for name in OPERATIONS), (io, "open"), *more]
        for home, name in homes:
            patch.setattr(home, name, killer.watched(getattr(home, name)))
        yield killer
