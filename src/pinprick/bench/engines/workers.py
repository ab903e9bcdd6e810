"""What an engine is: workers that take cells and report what came of them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import failures
from pinprick.errors import PinprickError, one_line

if TYPE_CHECKING:
    import pyarrow as pa

    from pinprick.bench.cell_file import Origin

Work = Callable[[Cell], tuple["pa.Table", "Origin"]]


@dataclass(frozen=True)
class Done:
    """A cell whose work returned."""

    cell: Cell
    table: "pa.Table"
    origin: "Origin"

    @property
    def failed(self) -> bool:
        """Whether a row holds an error, or a victim failed."""
        return bool(failures(self.table))


@dataclass(frozen=True)
class Raised:
    """A cell whose work raised an exception."""

    cell: Cell
    error: str
    seconds: float


@dataclass(frozen=True)
class Refused:
    """A cell that cannot be run where the worker is: no GPU, other weights, no data."""

    cell: Cell
    reason: str


@dataclass(frozen=True)
class Died:
    """A cell whose worker died before it was finished."""

    cell: Cell
    reason: str


Outcome = Done | Raised | Refused | Died


@dataclass(frozen=True)
class Share:
    """What each worker gets of a machine.

    Attributes:
        device: Kind of device of the cells: "cpu" or "cuda".
        threads: CPU threads per worker.
    """

    device: str
    threads: int


@runtime_checkable
class Workers(Protocol):
    """Workers for cells that need the same share of a machine."""

    def has_room(self) -> bool:
        """Whether one more cell can start now."""

    def start(self, cell: Cell, *, avoid: str = "") -> str:
        """Start a cell.

        Args:
            cell: The cell.
            avoid: Where the cell's last worker died; another place is preferred.

        Returns:
            Where it runs, for people.
        """

    def wait(self, seconds: float) -> Sequence[Outcome]:
        """Wait for cells to end, at most so long if the engine can, and return what ended."""

    def close(self) -> None:
        """Stop all workers; what they are working on is dropped."""


def attempt(work: Work, cell: Cell) -> Done | Raised | Refused:
    """Run a cell; an exception becomes the outcome.

    Errors of attacks are rows already. A ``PinprickError`` comes from loading what the cell needs.
    """
    start = time.monotonic()
    try:
        table, origin = work(cell)
    except PinprickError as error:
        return Refused(cell, one_line(error))
    except Exception as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        return Raised(cell, reason, time.monotonic() - start)
    return Done(cell, table, origin)
