"""Run the cells of a plan that the store does not have yet, on one of the engines.

This process alone writes to the store. What was finished stays finished, however the run ends.
"""

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import Newer
from pinprick.bench.engines.claims import Claims, in_share
from pinprick.bench.engines.here import Here
from pinprick.bench.engines.processes import Processes
from pinprick.bench.engines.ray import RayWorkers
from pinprick.bench.engines.workers import Done, Outcome, Raised, Refused, Share, Work, Workers
from pinprick.bench.store import Store
from pinprick.errors import BadInput, MissingExtra, Stopped, UnknownName
from pinprick.jobs.progress import CellCount, Progress, ShowCells

Engine = Literal["here", "processes", "ray"]
ENGINES: tuple[Engine, ...] = ("here", "processes", "ray")
_TRIES = 3  # workers that may die of one cell, before that is its result
_WAIT = 1.0  # seconds between two looks at the workers


@dataclass(frozen=True)
class RunSummary:
    """How many cells a run found and finished, and how many have errors.

    Attributes:
        cells: Cells of the share.
        found: Those that the store had already, or got from another run meanwhile.
        finished: Those that this run wrote, also with an error.
        failed: Those of all cells of the share whose rows hold an error, whichever run wrote them.
    """

    cells: int
    found: int
    finished: int
    failed: int


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    work: Work,
    *,
    engine: Engine = "here",
    workers: int | None = None,
    retry_errors: bool = False,
    share: tuple[int, int] = (1, 1),
    progress: Progress | None = None,
) -> RunSummary:
    """Run all cells that the store does not have.

    Args:
        cells: The cells.
        store: Where the rows go.
        work: Runs a cell. Other processes get a copy each, once, by pickle.
        engine: "here", "processes" or "ray".
        workers: Cells at a time with "processes" or "ray"; None for one per GPU or CPU core.
        retry_errors: Run cells again whose result is an error.
        share: (2, 8) runs the second of eight parts of the cells, divided by key.
        progress: Receives what is finished and what is running.
    """
    if engine not in ENGINES:
        raise UnknownName("engine", str(engine), ENGINES)
    if workers is not None and workers < 1:
        raise BadInput(f"the number of workers must be at least 1, got {workers}")
    if engine == "here" and workers is not None and workers > 1:
        raise BadInput(
            f"the engine here runs one cell at a time, got {workers} workers; for several at a "
            "time add --engine processes"
        )
    store.prepare()
    mine = [cell for cell in dict.fromkeys(cells) if in_share(cell.key, share)]
    with (
        Claims(store.folder / "running") as claims,
        (progress or Progress()).show_cells() as show,
    ):
        run = _Run(mine, store, claims, retry_errors, show, progress or Progress())
        try:
            for needs, group in run.groups():
                with closing(_open(engine, work, workers, needs)) as opened:
                    run.run(group, opened)
        except KeyboardInterrupt:
            done = run.found + run.finished
            raise Stopped(
                f"stopped: {done} of {len(mine)} cells are finished; "
                "the same command runs the others"
            ) from None
        with suppress(MissingExtra, Newer):  # a run can do without polars
            store.update_index()
        failed = sum(store.failed(cell) for cell in mine)
        return RunSummary(len(mine), run.found, run.finished, failed)


def _open(engine: Engine, work: Work, count: int | None, share: Share) -> Workers:
    if engine == "here":
        return Here(work)
    return (Processes if engine == "processes" else RayWorkers)(work, count=count, share=share)


class _Run:
    """A run under way: what is finished, what is running where, and how often workers died."""

    def __init__(
        self,
        cells: Sequence[Cell],
        store: Store,
        claims: Claims,
        retry_errors: bool,
        show: ShowCells,
        progress: Progress,
    ) -> None:
        self._store, self._claims, self._retry_errors = store, claims, retry_errors
        self._show, self._progress, self._start = show, progress, time.monotonic()
        self._running: dict[Cell, str] = {}  # where each cell is running
        self._deaths: Counter[Cell] = Counter()
        self._died_at: dict[Cell, str] = {}
        self._todo = [cell for cell in cells if not self._is_done(cell)]
        self._cells, self._images = len(cells), sum(map(len, cells))
        self._images_found = self._images - sum(map(len, self._todo))
        self._images_finished = 0
        self.found = len(cells) - len(self._todo)
        self.finished = 0

    def groups(self) -> Iterator[tuple[Share, list[Cell]]]:
        """The cells to run, divided by what their workers need."""

        def needs(cell: Cell) -> tuple[str, int]:
            return cell.device, cell.threads

        for (device, threads), group in groupby(sorted(self._todo, key=needs), needs):
            yield Share(device, threads), list(group)

    def run(self, group: Sequence[Cell], workers: Workers) -> None:
        """Run cells until all are finished, by this run or another."""
        queue, elsewhere = deque(group), list[Cell]()
        while queue or self._running or elsewhere:
            while queue and workers.has_room():
                cell = queue.popleft()
                if not self._claims.take(cell.key):
                    elsewhere.append(cell)
                elif self._is_done(cell):  # another run has finished it meanwhile
                    self._claims.release(cell.key)
                    self.found += 1
                    self._images_found += len(cell)
                else:
                    avoid = self._died_at.get(cell, "")
                    self._running[cell] = workers.start(cell, avoid=avoid)
            self._tell(elsewhere)
            if self._running:
                ended = workers.wait(_WAIT)
                for outcome in sorted(ended, key=_is_refused):  # finished rows are written first
                    queue.extend(self._end(outcome))
            elif elsewhere:
                time.sleep(_WAIT)
            if not queue:
                queue, elsewhere = deque(elsewhere), []

    def _is_done(self, cell: Cell) -> bool:
        if not self._store.has(cell):
            return False
        return not (self._retry_errors and self._store.failed(cell))

    def _end(self, outcome: Outcome) -> list[Cell]:
        """Write what came of a cell; returns the cell if it is to be run again.

        ``BadInput`` where the cell cannot be run here. Its rows would say nothing of the attack.
        """
        cell = outcome.cell
        where = self._running.pop(cell)
        if isinstance(outcome, Done):
            self._write(outcome)
        elif isinstance(outcome, Raised):
            self._write_error(cell, outcome.error, outcome.seconds)
        elif isinstance(outcome, Refused):
            raise BadInput(f"{cell.title} cannot be run here: {outcome.reason}")
        else:
            self._deaths[cell] += 1
            self._died_at[cell] = where
            number = self._deaths[cell]
            self._progress.warn(
                f"the worker of {cell.title} ({where}) {outcome.reason}; try {number} of {_TRIES}"
            )
            if number < _TRIES:
                return [cell]
            self._write_error(cell, f"{_TRIES} workers died, the last one {outcome.reason}", 0.0)
        return []

    def _write_error(self, cell: Cell, error: str, seconds: float) -> None:
        from pinprick.bench.run_cell import failed_cell

        self._write(Done(cell, *failed_cell(cell, error, seconds)))

    def _write(self, done: Done) -> None:
        self._store.write(done.cell, done.table, done.origin)
        self._claims.release(done.cell.key)
        self.finished += 1
        self._images_finished += len(done.cell)

    def _tell(self, elsewhere: Sequence[Cell]) -> None:
        running = [f"{where}: {cell.title}" for cell, where in self._running.items()]
        running += [f"{self._claims.owner(cell.key)}: {cell.title}" for cell in elsewhere]
        self._show(
            CellCount(
                cells=self._cells,
                cells_done=self.found + self.finished,
                images=self._images,
                images_done=self._images_found + self._images_finished,
                images_now=self._images_finished,
                seconds=time.monotonic() - self._start,
                running=tuple(running),
            )
        )


def _is_refused(outcome: Outcome) -> bool:
    return isinstance(outcome, Refused)
