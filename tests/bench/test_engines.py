"""Where cells run makes no difference to their rows, and a worker that dies loses one cell."""

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.fake_work import CountedWork, Unloadable, contents, fake_cell, fake_cells, starts, work
from pinprick.bench.cache import Cache
from pinprick.bench.cell import Cell
from pinprick.bench.engines import run_cells as module
from pinprick.bench.engines.here import Here
from pinprick.bench.engines.processes import Processes
from pinprick.bench.engines.run_cells import RunSummary, run_cells
from pinprick.bench.engines.workers import Died, Outcome, Refused, Share, attempt
from pinprick.bench.plan_file import read_plan
from pinprick.bench.row_schema import TIMES
from pinprick.bench.run_cell import run_cell
from pinprick.bench.store import Store
from pinprick.cli import console
from pinprick.errors import BadInput, Stopped, UnknownName
from pinprick.jobs.progress import CellCount, Progress, ShowCells

pytestmark = pytest.mark.plain  # whole numbers where hints say float

SMOKE = Path(__file__).parents[2] / "plans" / "smoke.toml"


class Recorder(Progress):
    """Remembers what a run tells."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.counts: list[CellCount] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    @contextmanager
    def show_cells(self) -> Iterator[ShowCells]:
        yield self.counts.append


def test_processes_give_the_rows_of_a_loop(tmp_path: Path) -> None:
    cells = fake_cells(6)
    for engine in ("here", "processes"):
        count = None if engine == "here" else 2
        summary = run_cells(cells, Store(tmp_path / engine), work, engine=engine, workers=count)
        assert summary == RunSummary(cells=6, found=0, finished=6, failed=0)
    here, processes = (contents(Store(tmp_path / name)) for name in ("here", "processes"))
    assert here == processes
    assert here.keys() == {cell.key for cell in cells}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_attacks_on_a_network_have_the_same_rows_on_every_engine(
    tmp_path: Path, engine: Any, monkeypatch: pytest.MonkeyPatch, only_ray: None
) -> None:
    if engine == "ray":
        pytest.importorskip("ray")
        monkeypatch.setenv("RAY_ADDRESS", "local")
        monkeypatch.setenv("PYTHONPATH", str(SMOKE.parent.parent / "src"))
    cells, found = read_plan(SMOKE).cells(), []
    for name in ("here", engine):
        store = Store(tmp_path / name)
        one_cell, count = partial(run_cell, loaded=Cache()), None if name == "here" else 2
        summary = run_cells(cells, store, one_cell, engine=name, workers=count)
        assert (summary.finished, summary.failed) == (len(cells), 0)
        found.append({key: table.drop_columns(TIMES) for key, table in contents(store).items()})
    assert found[0] == found[1]


@pytest.mark.parametrize("engine", ["here", pytest.param("processes", marks=pytest.mark.slow)])
def test_finished_cells_are_not_run_again(tmp_path: Path, engine: Any) -> None:
    log = tmp_path / "log"
    cells = fake_cells(4, log=str(log))
    store = Store(tmp_path / "store")
    run_cells(cells[:2], store, work)
    summary = run_cells([*cells, *cells], store, work, engine=engine, workers=1)
    assert summary == RunSummary(cells=4, found=2, finished=2, failed=0)
    assert starts(log) == [0, 1, 2, 3]


def test_a_damaged_file_is_run_again(tmp_path: Path) -> None:
    store, cells = Store(tmp_path / "store"), fake_cells(2)
    run_cells(cells, store, work)
    before = contents(store)
    path = store.path(cells[0].key)
    path.write_bytes(path.read_bytes()[:-9])
    assert run_cells(cells, store, work) == RunSummary(cells=2, found=1, finished=1, failed=0)
    assert contents(store) == before


def test_an_exception_is_the_result_of_its_cell(tmp_path: Path) -> None:
    log = tmp_path / "log"
    store = Store(tmp_path / "store")
    cells = [fake_cell(0, raises="a bad day", log=str(log)), *fake_cells(3, log=str(log))]
    assert run_cells(cells, store, work).failed == 1
    errors = store.read(cells[0].key)[2].column("error").to_pylist()
    assert errors == ["ValueError: a bad day"] * 2
    assert run_cells(cells, store, work) == RunSummary(cells=4, found=4, finished=0, failed=1)
    assert len(starts(log)) == 4


@pytest.mark.parametrize("engine", ["here", "processes"])
def test_a_cell_that_cannot_be_run_here_ends_the_run_and_has_no_rows(
    tmp_path: Path, engine: Any
) -> None:
    store, cells = Store(tmp_path / "store"), fake_cells(3)
    refused = fake_cell(7, refuses="there is no GPU")
    with pytest.raises(BadInput, match=r"fake on none.* cannot be run here: there is no GPU"):
        run_cells([cells[0], refused, *cells[1:]], store, work, engine=engine, workers=1)
    assert store.keys() == [cells[0].key]
    assert not list((store.folder / "running").iterdir())


def test_what_ended_together_with_a_refused_cell_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Both(Here):
        """Takes two cells, and reports them together."""

        def has_room(self) -> bool:
            return len(given) < 2

        def start(self, cell: Cell, *, avoid: str = "") -> str:
            given.append(cell)
            return "here"

        def wait(self, seconds: float) -> list[Outcome]:
            return [Refused(given[0], "not here"), attempt(work, given[1])]

    given: list[Cell] = []
    monkeypatch.setattr(module, "Here", Both)
    store, cells = Store(tmp_path / "store"), fake_cells(2)
    with pytest.raises(BadInput, match="not here"):
        run_cells(cells, store, work)
    assert store.keys() == [cells[1].key]


@pytest.mark.parametrize("change", [{"revision": 999}, {"weights": "x"}, {"data_hash": "x"}])
def test_a_cell_made_for_something_else_has_no_rows(
    tmp_path: Path, change: dict[str, Any], cache: Cache
) -> None:
    cell, store = read_plan(SMOKE).cells(cache)[0], Store(tmp_path)
    with pytest.raises(BadInput, match="cannot be run here"):
        run_cells([replace(cell, **change)], store, partial(run_cell, loaded=cache))
    assert store.keys() == []


def test_errors_are_run_again_when_asked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    store = Store(tmp_path / "store")
    cells = [fake_cell(7, raises="again", log=str(log)), *fake_cells(2, log=str(log))]
    run_cells(cells, store, work)
    summary = run_cells(cells, store, work, retry_errors=True)
    assert summary == RunSummary(cells=3, found=2, finished=1, failed=1)
    assert starts(log) == [7, 0, 1, 7]


def test_a_worker_that_dies_loses_its_cell_alone_and_it_is_run_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    dying = fake_cell(9, dies_once=str(tmp_path / "mark"), log=str(log))
    cells = [dying, *fake_cells(5, log=str(log))]
    store, told = Store(tmp_path / "store"), Recorder()
    summary = run_cells(cells, store, work, engine="processes", workers=2, progress=told)
    assert summary == RunSummary(cells=6, found=0, finished=6, failed=0)
    assert sorted(starts(log)) == [0, 1, 2, 3, 4, 9, 9]
    assert store.read(dying.key)[2].column("pixels").to_pylist() == [9, 27]
    (warning,) = told.warnings
    assert "was killed by SIGKILL, perhaps for lack of memory; try 1 of 3" in warning


def test_a_cell_that_kills_every_worker_ends_as_an_error(tmp_path: Path) -> None:
    log = tmp_path / "log"
    dying = fake_cell(9, dies="always", log=str(log))
    cells = [dying, *fake_cells(3, log=str(log))]
    store = Store(tmp_path / "store")
    summary = run_cells(cells, store, work, engine="processes", workers=1)
    assert summary == RunSummary(cells=4, found=0, finished=4, failed=1)
    assert starts(log).count(9) == 3
    (error, _) = store.read(dying.key)[2].column("error").to_pylist()
    assert error.startswith("3 workers died, the last one was killed by SIGKILL")
    assert run_cells(cells, store, work, engine="processes").found == 4


@pytest.mark.slow
def test_a_worker_that_died_idle_is_replaced() -> None:
    pool = Processes(work, count=1, share=Share("cpu", 1))
    try:
        pool.start(fake_cell(0))
        while not pool.wait(5):
            pass
        worker = pool._slots[0]
        assert worker is not None
        worker._process.kill()
        worker._process.join()
        pool.start(fake_cell(1))
        ended: list[Any] = []
        while not ended:
            ended += pool.wait(5)
        assert not isinstance(ended[0], Died)
    finally:
        pool.close()


def test_a_process_loads_the_work_once_and_has_one_thread(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    run_cells(fake_cells(4), store, CountedWork(), engine="processes", workers=1)
    rows = [table.to_pylist()[0] for table in contents(store).values()]
    assert sorted(row["count"] for row in rows) == [1, 2, 3, 4]
    assert len({row["process"] for row in rows}) == 1
    assert {row["threads"] for row in rows} == {1}


def test_ctrl_c_leaves_what_is_finished(tmp_path: Path) -> None:
    store, cells = Store(tmp_path / "store"), fake_cells(3)
    with pytest.raises(Stopped, match="stopped: 1 of 3 cells are finished"):
        run_cells([cells[0], fake_cell(1, stops="now"), cells[2]], store, work)
    assert store.keys() == [cells[0].key]
    assert not list((store.folder / "running").iterdir())


def test_a_full_disk_ends_the_run_and_leaves_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, cells = Store(tmp_path / "store"), fake_cells(6)
    write, written = Path.write_bytes, list[Path]()

    def full(path: Path, content: Any) -> int:
        if ".parquet." in path.name:
            written.append(path)
            if len(written) > 2:
                raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(BadInput, match="No space left on device"):
        run_cells(cells, store, work, engine="processes", workers=2)
    monkeypatch.undo()
    assert len(store.keys()) == 2
    assert not store.damaged()
    assert run_cells(cells, store, work) == RunSummary(cells=6, found=2, finished=4, failed=0)


def test_progress_counts_cells_and_images_and_says_what_is_running(tmp_path: Path) -> None:
    store, told, cells = Store(tmp_path / "store"), Recorder(), fake_cells(3, sleep=0.01)
    run_cells(cells[:1], store, work)
    run_cells(cells, store, work, progress=told)
    first, second, *_ = told.counts
    assert (first.cells, first.cells_done, first.images, first.images_done) == (3, 1, 6, 2)
    assert first.seconds_left is None
    assert first.running == (f"here: {cells[1].title}",)
    assert (second.cells_done, second.images_done, second.images_now) == (2, 4, 2)
    assert second.seconds_left == pytest.approx(2 / second.rate)
    assert str(first) == "1 of 3 cells, 2 of 6 images"


def test_the_line_of_progress_has_rate_and_time_left() -> None:
    count = CellCount(
        cells=8, cells_done=4, images=800, images_done=400, images_now=300, seconds=150, running=()
    )
    assert str(count) == "4 of 8 cells, 400 of 800 images, 2 images per second, 3.3 min left"


def test_without_a_terminal_the_shell_prints_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    count = CellCount(
        cells=2,
        cells_done=0,
        images=4,
        images_done=0,
        images_now=0,
        seconds=1,
        running=("GPU 1: x",),
    )
    with console.Console(quiet=False).show_cells() as show:
        show(count)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(console, "_SILENCE", -1)
        show(count)
    assert capsys.readouterr().err == "0 of 2 cells, 0 of 4 images; GPU 1: x\n"


@pytest.mark.slow
def test_cells_of_several_devices_and_threads_have_their_own_workers(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    cells = [replace(cell, threads=1 + number) for number, cell in enumerate(fake_cells(2))]
    run_cells(cells, store, CountedWork(), engine="processes")
    threads = [store.read(cell.key)[2].column("threads")[0].as_py() for cell in cells]
    assert threads == [1, 2]


def test_each_process_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    pool = Processes(work, count=None, share=Share("cuda", 1))
    chosen = [pool._environment(slot)["CUDA_VISIBLE_DEVICES"] for slot in range(len(pool._slots))]
    assert chosen == ["4", "6"]


def test_cells_for_a_gpu_are_refused_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(BadInput, match="need a GPU"):
        run_cells([replace(fake_cell(0), device="cuda")], Store(tmp_path), work, engine="processes")


@pytest.mark.slow
def test_a_process_whose_gpu_may_be_broken_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    log = tmp_path / "log"
    cells = [fake_cell(0), fake_cell(1, raises="an illegal access"), fake_cell(2)]
    cells = [
        replace(cell, device="cuda", attack={**cell.attack, "log": str(log)}) for cell in cells
    ]
    run_cells(cells, Store(tmp_path / "store"), work, engine="processes")
    first, second, third = (line.split()[1] for line in log.read_text().splitlines())
    assert first == second != third


def test_work_that_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    def inner(cell: Cell) -> Any:
        return work(cell)

    with pytest.raises(BadInput, match="the work cannot be sent to a process"):
        run_cells(fake_cells(1), Store(tmp_path), inner, engine="processes")


def test_a_worker_that_cannot_load_the_work_ends_the_run(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(BadInput, match=r"a worker process cannot load the work: .*not there"):
        run_cells(fake_cells(3), Store(tmp_path), Unloadable(), engine="processes", workers=1)
    assert time.monotonic() - start < 30


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    wrong: Any = "proceses"
    with pytest.raises(UnknownName, match="did you mean processes"):
        run_cells([], Store(tmp_path), work, engine=wrong)
    with pytest.raises(BadInput, match="at least 1, got 0"):
        run_cells([], Store(tmp_path), work, workers=0)
    with pytest.raises(BadInput, match=r"at a time, got 4 workers; .* --engine processes"):
        run_cells(fake_cells(1), Store(tmp_path), work, workers=4)
    assert run_cells(fake_cells(1), Store(tmp_path), work, workers=1).finished == 1
