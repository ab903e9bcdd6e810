"""The engine ``here``: a loop in this process."""

from collections.abc import Sequence

from pinprick.bench.cell import Cell
from pinprick.bench.engines.workers import Outcome, Work, attempt


class Here:
    """This process as the only worker; a cell runs while it is waited for."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._next: Cell | None = None

    def has_room(self) -> bool:
        return self._next is None

    def start(self, cell: Cell, *, avoid: str = "") -> str:
        self._next = cell
        return "here"

    def wait(self, seconds: float) -> Sequence[Outcome]:
        assert self._next is not None, "a cell was started"
        cell, self._next = self._next, None
        return [attempt(self._work, cell)]

    def close(self) -> None:
        self._next = None
