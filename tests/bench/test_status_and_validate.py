"""What a store lacks of a plan, and what a plan would take."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bench.cells import CELL, ORIGIN, cell_with
from bench.conftest import WritePlan
from pinprick.bench import validate
from pinprick.bench.cache import Cache
from pinprick.bench.cell import Cell
from pinprick.bench.plan_file import read_plan
from pinprick.bench.rows import error_table
from pinprick.bench.status import ErrorStatus, GroupStatus, status_of
from pinprick.bench.store import Store
from pinprick.bench.validate import estimate, in_gb
from pinprick.errors import BadInput


def _finish(store: Store, cell: Cell, error: str = "") -> None:
    store.write(cell, error_table(cell.key, range(cell.first, cell.last), error), ORIGIN)


def test_status_counts_finished_failed_and_damaged_cells(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.prepare()
    cells = [cell_with(seed=seed) for seed in range(4)]
    for cell, error in zip(cells, ("", "out of luck", ""), strict=False):
        _finish(store, cell, error)
    _finish(store, cell_with(seed=99), "of another plan")
    broken = store.path(cells[2].key)
    broken.write_bytes(b"half")
    status = status_of([*cells, cell_with(goal="random")], store)
    names = (CELL.model, CELL.data, "greedy")
    assert status.groups == [
        GroupStatus(*names, "untargeted", cells=4, finished=2, failed=1),
        GroupStatus(*names, "random", cells=1, finished=0, failed=0),
    ]
    assert (status.cells, status.finished, status.failed, status.others) == (5, 2, 1, 1)
    assert status.damaged == [broken]
    assert status.errors == [ErrorStatus("out of luck", cells=1, rows=3)]


def test_status_has_each_error_once_and_the_most_frequent_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.prepare()
    cells = [cell_with(seed=seed) for seed in range(3)]
    for cell, error in zip(cells, ("rare", "out of luck. 3 GB", "out of luck. 4 GB"), strict=True):
        _finish(store, cell, error)
    assert status_of(cells, store).errors == [
        ErrorStatus("out of luck", cells=2, rows=6),
        ErrorStatus("rare", cells=1, rows=3),
    ]


@pytest.fixture
def cells(write_plan: WritePlan, cache: Cache) -> tuple[Cell, ...]:
    text = """
        models = ["pinprick:fashion_cnn"]
        data = ["fashion_sample[:6]"]
        attacks = [{name = "sigma_zero", steps = 30}, "cw_l0"]
        seeds = [0, 1]
        images_per_cell = 4
        max_backwards = 20
        """
    return read_plan(write_plan(text)).cells(cache)


def test_an_estimate_multiplies_images_and_passes(
    cells: tuple[Cell, ...], cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cost = validate.PassCost(forward=0.5, backward=2.0, memory=7, free=10)
    monkeypatch.setattr(validate, "measure_passes", lambda cell, cache: cost)
    known, unknown = estimate(cells, cache)
    assert (known.cells, known.images, known.forwards, known.backwards) == (4, 12, 30, 20)
    assert known.seconds == 12 * (30 * 0.5 + 20 * 2.0)
    assert (unknown.forwards, unknown.backwards, unknown.seconds) == (None, 20, None)


def test_a_limit_on_all_passes_cuts_both_kinds_in_proportion(
    cells: tuple[Cell, ...], cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cost = validate.PassCost(forward=0.5, backward=2.0, memory=7, free=10)
    monkeypatch.setattr(validate, "measure_passes", lambda cell, cache: cost)
    (known,) = estimate([replace(cells[0], max_passes=10)], cache)
    assert (known.forwards, known.backwards) == (6, 4)
    assert known.seconds == len(cells[0]) * (6 * 0.5 + 4 * 2.0)


def test_passes_are_measured(cells: tuple[Cell, ...], cache: Cache) -> None:
    small = validate.measure_passes(cells[0], cache)
    assert 0 < small.forward < 1
    assert 0 < small.backward < 1
    one = validate.measure_passes(replace(cells[0], batch_size=1), cache)
    assert small.memory == 4 * one.memory  # of a batch of four images


def test_more_memory_than_there_is_is_refused_with_a_size_that_fits(
    cells: tuple[Cell, ...], cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = validate.measure_passes(replace(cells[0], batch_size=1), cache).memory
    monkeypatch.setattr(validate, "_free_memory", lambda device: 3 * one)
    with pytest.raises(BadInput, match=r"a batch of 4 images .* set batch_size to at most 3"):
        estimate(cells, cache)


def test_bytes_in_words() -> None:
    assert [in_gb(number) for number in (2_500_000, 1_250_000_000)] == ["2.5 MB", "1.2 GB"]


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({}, []),
        ({"memory.max": "max", "memory.current": "5", "memory.stat": "inactive_file 2"}, []),
        (
            {"memory.max": "90\n", "memory.current": "50\n", "memory.stat": "x 1\ninactive_file 7"},
            [47],
        ),
        (
            {
                "memory/memory.limit_in_bytes": "80",
                "memory/memory.usage_in_bytes": "20",
                "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 3",
            },
            [63],
        ),
    ],
)
def test_the_limit_of_a_container_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], left: list[int]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(validate, "_CGROUP", tmp_path)
    assert [*validate._left_to_container()] == [math.inf, *left]
    if left:
        assert validate._free_memory(torch.device("cpu")) == left[0]
