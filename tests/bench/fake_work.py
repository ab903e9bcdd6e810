"""Work for tests of the engines: cells that wait, fail or die as their attack says, and rows."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from page_faults import page_faults

from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import Origin
from pinprick.bench.engines.run_cells import run_cells
from pinprick.bench.store import Store
from pinprick.errors import BadInput
from pinprick.jobs.progress import Progress


def fake_cell(number: int, **attack: Any) -> Cell:
    return Cell(
        attack={"name": "fake", "number": number, **attack},
        revision=1,
        model="none",
        weights="",
        data="none[0:2]",
        data_hash="",
        first=0,
        last=2,
    )


def fake_cells(count: int, **attack: Any) -> list[Cell]:
    return [fake_cell(number, **attack) for number in range(count)]


def work(cell: Cell) -> tuple[pa.Table, Origin]:
    """Do what the attack of the cell says, and give two rows that depend on the cell alone."""
    settings = cell.attack
    if "log" in settings:  # one line per start
        with Path(settings["log"]).open("a") as file:
            file.write(f"{settings['number']} {os.getpid()}\n")
    while "gate" in settings and not Path(settings["gate"]).exists():
        time.sleep(0.02)
    time.sleep(settings.get("sleep", 0.0))
    if "faults" in settings:
        Path(settings["faults"]).write_text(str(page_faults()))
    if "dies" in settings or ("dies_once" in settings and _is_first(settings["dies_once"])):
        os.kill(os.getpid(), signal.SIGKILL)
    if "refuses" in settings:
        raise BadInput(settings["refuses"])
    if "raises" in settings:
        raise ValueError(settings["raises"])
    if "stops" in settings:
        raise KeyboardInterrupt
    return rows_of(cell), Origin(
        version="",
        commit="",
        torch="",
        device="",
        date="",
        seconds=time.perf_counter(),
        peak_memory=None,
    )


def rows_of(cell: Cell, **more: list[Any]) -> pa.Table:
    number = cell.attack["number"]
    return pa.table(
        {
            "cell": [cell.key] * 2,
            "index": [0, 1],
            "pixels": [number, 3 * number],
            "remark": ["", ""],
            "error": ["", ""],
            **more,
        }
    )


class CountedWork:
    """Says in its rows how many cells this process has done, which process, and its threads."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, cell: Cell) -> tuple[pa.Table, Origin]:
        _, origin = work(cell)
        self._count += 1
        threads = int(os.environ["OMP_NUM_THREADS"])
        more = {"count": self._count, "process": os.getpid(), "threads": threads}
        return rows_of(cell, **{name: [value] * 2 for name, value in more.items()}), origin


class Unloadable:
    """Work that can be sent, and not be loaded."""

    def __call__(self, cell: Cell) -> Any:
        raise NotImplementedError

    def __reduce__(self) -> Any:
        return (_refuse, ())


def _refuse() -> None:
    raise ImportError("the module is not there")


class Warnings(Progress):
    """Prints the warnings of a run."""

    def warn(self, text: str) -> None:
        print(text, file=sys.stderr)


def starts(log: Path) -> list[int]:
    """The numbers of the cells that were started, in order."""
    return [int(line.split()[0]) for line in log.read_text().splitlines()]


def processes(log: Path) -> list[int]:
    """The processes that started the cells, in order."""
    return [int(line.split()[1]) for line in log.read_text().splitlines()]


def contents(store: Store) -> dict[str, pa.Table]:
    keys = store.keys()
    return {key: store.read(key)[2] for key in keys}


def _is_first(mark: str) -> bool:
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


if __name__ == "__main__":  # folder, engine, number of cells, settings of the attack as NAME=VALUE
    folder, engine, count, *given = sys.argv[1:]
    settings: dict[str, Any] = dict(one.split("=", 1) for one in given)
    if "sleep" in settings:
        settings["sleep"] = float(settings["sleep"])
    chosen: Any = engine
    number = None if engine == "here" else 2
    run_cells(
        fake_cells(int(count), **settings),
        Store(folder),
        work,
        engine=chosen,
        workers=number,
        progress=Warnings(),
    )
