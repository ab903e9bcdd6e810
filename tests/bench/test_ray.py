"""The engine ray on clusters of this machine: its rows, its bounded tries, and a node that dies."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.fake_work import (
    CountedWork,
    Unloadable,
    contents,
    fake_cell,
    fake_cells,
    processes,
    rows_of,
    starts,
    work,
)
from pinprick.bench.engines.run_cells import RunSummary, run_cells
from pinprick.bench.store import Store
from pinprick.errors import BadInput, MissingExtra
from pinprick.jobs.progress import CellCount, Progress, ShowCells

pytestmark = pytest.mark.slow  # a cluster takes seconds to start
SCRIPT = Path(__file__).with_name("fake_work.py")


@pytest.fixture(scope="module")
def cluster(only_ray: None) -> Iterator[Any]:
    """A cluster of two nodes with one core each, to which this process is connected."""
    ray = pytest.importorskip("ray")
    utils = pytest.importorskip("ray.cluster_utils")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))  # to find these tests
        made = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        made.add_node(num_cpus=1)
        ray.init(address=made.address, log_to_driver=False)
        yield made
        ray.shutdown()
        made.shutdown()


def test_ray_gives_the_rows_of_a_loop(tmp_path: Path, cluster: Any) -> None:
    cells = fake_cells(6)
    for engine in ("here", "ray"):
        summary = run_cells(cells, Store(tmp_path / engine), work, engine=engine)
        assert summary == RunSummary(cells=6, found=0, finished=6, failed=0)
    assert contents(Store(tmp_path / "here")) == contents(Store(tmp_path / "ray"))


def test_ray_processes_load_the_work_once_and_have_one_thread(tmp_path: Path, cluster: Any) -> None:
    store = Store(tmp_path)
    run_cells(fake_cells(8, sleep=0.05), store, CountedWork(), engine="ray")
    rows = [table.to_pylist()[0] for table in contents(store).values()]
    assert max(row["count"] for row in rows) > 2
    assert len({row["process"] for row in rows}) >= 2
    assert {row["threads"] for row in rows} == {1}


def test_a_cell_that_kills_every_ray_worker_ends_as_an_error(tmp_path: Path, cluster: Any) -> None:
    log, store = tmp_path / "log", Store(tmp_path / "store")
    dying = fake_cell(9, dies="always", log=str(log))
    once = fake_cell(8, dies_once=str(tmp_path / "mark"), log=str(log))
    cells = [dying, once, *fake_cells(3, log=str(log))]
    summary = run_cells(cells, store, work, engine="ray")
    assert summary == RunSummary(cells=5, found=0, finished=5, failed=1)
    assert [starts(log).count(number) for number in (9, 8, 0)] == [3, 2, 1]
    assert store.read(once.key)[2].column("error").to_pylist() == ["", ""]
    assert store.read(dying.key)[2].column("error")[0].as_py().startswith("3 workers died")


def test_an_exception_is_the_result_of_its_cell_on_ray(tmp_path: Path, cluster: Any) -> None:
    cell, store = fake_cell(0, raises="a bad day"), Store(tmp_path)
    assert run_cells([cell], store, work, engine="ray").failed == 1
    assert store.read(cell.key)[2].column("error")[0].as_py() == "ValueError: a bad day"


def test_a_cell_that_cannot_be_run_on_ray_ends_the_run(tmp_path: Path, cluster: Any) -> None:
    store = Store(tmp_path)
    with pytest.raises(BadInput, match="cannot be run here: there is no GPU"):
        run_cells([fake_cell(0, refuses="there is no GPU")], store, work, engine="ray")
    assert store.keys() == []


def test_work_that_ray_cannot_load_ends_the_run(tmp_path: Path, cluster: Any) -> None:
    with pytest.raises(BadInput, match=r"cannot load the work.*the module is not there"):
        run_cells(fake_cells(2), Store(tmp_path), Unloadable(), engine="ray")


class NodeKiller(Progress):
    """Kills a node of the cluster once both nodes are at work, then lets the cells end."""

    def __init__(self, cluster: Any, log: Path, gate: Path) -> None:
        self._cluster, self._log, self._gate = cluster, log, gate
        self.killed = False
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    @contextmanager
    def show_cells(self) -> Iterator[ShowCells]:
        yield self._show

    def _show(self, count: CellCount) -> None:
        if self.killed or not self._log.exists() or len(starts(self._log)) < 2:
            return
        self.killed = True
        (node,) = self._cluster.worker_nodes
        self._cluster.remove_node(node, allow_graceful=False)
        until = time.monotonic() + 60
        while not any(map(is_gone, processes(self._log))):  # it outlives its node for a moment
            assert time.monotonic() < until, "the process of the dead node goes on"
            time.sleep(0.05)
        self._gate.touch()


def is_gone(process: int) -> bool:
    """Whether a process is dead, or waits for its parent to read its exit status."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{process}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_node_that_dies_midway_loses_no_cell(tmp_path: Path, cluster: Any) -> None:
    """The last test on this cluster: it has one node afterwards."""
    log, gate, store = tmp_path / "log", tmp_path / "gate", Store(tmp_path / "store")
    killer = NodeKiller(cluster, log, gate)
    cells = fake_cells(8, log=str(log), gate=str(gate))  # no cell ends before the node is gone
    summary = run_cells(cells, store, work, engine="ray", progress=killer)
    assert killer.killed
    assert summary == RunSummary(cells=8, found=0, finished=8, failed=0)
    assert any("try 1 of 3" in warning for warning in killer.warnings)
    for cell in cells:
        assert store.read(cell.key)[2] == rows_of(cell)


def test_a_cell_that_runs_out_of_memory_is_tried_three_times(
    tmp_path: Path, only_ray: None
) -> None:
    """Ray's memory monitor finds this machine too full for any task, and kills each."""
    pytest.importorskip("ray")
    run = subprocess.run(
        [sys.executable, SCRIPT, tmp_path, "ray", "2", "sleep=20"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "RAY_ADDRESS": "local",
            "RAY_memory_usage_threshold": "0.001",
            "RAY_memory_monitor_refresh_ms": "100",
        },
        timeout=100,
        capture_output=True,
    )
    assert run.returncode == 0, run.stderr
    tries = re.findall(r"memory monitor: .*; try (\d) of 3", run.stderr.decode())
    assert sorted(tries) == ["1", "1", "2", "2", "3", "3"]
    for table in contents(Store(tmp_path)).values():
        assert set(table.column("error").to_pylist()) == {
            "3 workers died, the last one was killed by Ray's memory monitor: "
            "its machine ran out of memory"
        }


def test_the_engine_ray_says_which_extra_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pinprick\[ray\]'"):
        run_cells(fake_cells(1), Store(tmp_path), work, engine="ray")
