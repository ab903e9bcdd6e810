"""The store holds whole cells only, finds all others, and says so where the disk refuses."""

import errno
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.cells import CELL, ORIGIN, cell_with, rows_of
from bench.fake_work import fake_cell, work
from pinprick.bench import store as module
from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import Damaged, Newer, rows_sha256
from pinprick.bench.compare_stores import diff_stores, merge_stores
from pinprick.bench.engines.run_cells import run_cells
from pinprick.bench.status import status_of
from pinprick.bench.store import Store
from pinprick.bench.verify import verify_store
from pinprick.errors import BadInput

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    one = Store(tmp_path / "store")
    one.prepare()
    return one


def test_a_cell_comes_back_as_it_was_written(store: Store) -> None:
    store.write(CELL, rows_of(CELL), ORIGIN)
    cell, origin, table = store.read(CELL.key)
    assert (cell, origin) == (CELL, ORIGIN)
    assert rows_sha256(table) == rows_sha256(rows_of(CELL))
    assert store.has(CELL)
    assert store.keys() == [CELL.key]
    assert store.damaged() == []


def test_a_cell_goes_to_plain_data_and_back() -> None:
    assert Cell.from_plain(json.loads(json.dumps(CELL.plain()))) == CELL
    assert cell_with(attack={"name": "x", "k": (1, 2)}) == cell_with(
        attack={"k": [1, 2], "name": "x"}
    )
    with pytest.raises(BadInput, match="not a cell"):
        Cell.from_plain({"attack": {}})


@pytest.mark.parametrize(
    "change",
    [
        {"attack": {"name": "greedy", "steps": 11}},
        {"revision": 2},
        {"code": "d"},
        {"weights": "d"},
        {"data_hash": "d"},
        {"seed": 1},
        {"batch_size": 1},
        {"threads": 2},
        {"device": "cuda"},
        {"goal": "random"},
        {"max_forwards": 5},
        {"victims": ()},
        {"dense": True},
    ],
    ids=str,
)
def test_everything_that_decides_the_rows_changes_the_key(change: dict[str, Any]) -> None:
    assert cell_with(**change).key != CELL.key


def test_a_key_never_changes_between_versions_by_accident() -> None:
    assert CELL.key == "5d76028805ab2ad75d94885b11ed7886"


def test_a_changed_setting_makes_a_new_cell_and_leaves_the_old_one(store: Store) -> None:
    store.write(CELL, rows_of(CELL), ORIGIN)
    before = store.path(CELL.key).read_bytes()
    other = cell_with(attack={"name": "greedy", "steps": 11})
    assert not store.has(other)
    store.write(other, rows_of(other), ORIGIN)
    assert store.path(CELL.key).read_bytes() == before
    assert len(store.keys()) == 2


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)


def _foreign(path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), path)


def _tamper(path: Path) -> None:
    table = pq.read_table(path)
    row = table.column_names.index("pixels")
    table = table.set_column(row, "pixels", pa.array([1, 1, None], pa.int64()))
    pq.write_table(table, path)


def _newer(path: Path) -> None:
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[b"pinprick"])
    about["format"] = 2
    pq.write_table(table.replace_schema_metadata({"pinprick": json.dumps(about)}), path)


def _another_cell(path: Path) -> None:
    store, other = Store(path.parents[2]), cell_with(seed=5)
    store.write(other, rows_of(other), ORIGIN)
    store.path(other.key).replace(path)


@pytest.mark.parametrize(
    "damage",
    [_truncate, _empty, _flip_a_bit, _foreign, _tamper, _another_cell],
)
def test_a_damaged_file_is_found_and_can_be_written_again(store: Store, damage: Any) -> None:
    store.write(CELL, rows_of(CELL), ORIGIN)
    path = store.path(CELL.key)
    damage(path)
    assert not store.has(CELL)
    assert store.damaged() == [path]
    with pytest.raises(Damaged, match=CELL.key):
        store.read(CELL.key)
    store.write(CELL, rows_of(CELL), ORIGIN)
    assert store.has(CELL)
    assert store.damaged() == []


def test_a_file_of_a_newer_version_is_refused_and_never_written_again(store: Store) -> None:
    other = cell_with(seed=1)
    for cell in (CELL, other):
        store.write(cell, rows_of(cell), ORIGIN)
    path = store.path(CELL.key)
    _newer(path)
    content, message = path.read_bytes(), rf"{CELL.key}.* has format 2, .* reads up to 1"
    readers: list[Callable[[], object]] = [
        *(lambda: store.has(CELL), lambda: store.read(CELL.key), store.damaged, store.cells),
        *(store.scan, store.rows_and_cells, lambda: status_of([other], store)),
        *(lambda: verify_store(store.folder), lambda: diff_stores(store.folder, store.folder)),
        lambda: merge_stores([store.folder], store.folder / "merged"),
        lambda: run_cells([CELL], store, lambda _: (rows_of(CELL), ORIGIN)),
    ]
    for read in readers:
        with pytest.raises(Newer, match=message):
            read()
    assert path.read_bytes() == content


def test_a_run_of_other_cells_does_not_mind_a_file_of_a_newer_version(store: Store) -> None:
    store.write(CELL, rows_of(CELL), ORIGIN)
    _newer(store.path(CELL.key))
    assert run_cells([fake_cell(1)], store, work).finished == 1


def test_a_newer_version_raises_the_mark_of_an_older_store(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(module, "FORMAT", 2)
        Store(store.folder).prepare()
    with pytest.raises(BadInput, match="has format 2, this version of pinprick reads up to 1"):
        Store(store.folder)


def test_files_of_others_are_found(store: Store) -> None:
    stray = store.folder / "cells" / "notes.txt"
    stray.write_text("mine")
    assert store.damaged() == [stray]
    assert store.keys() == []


def test_rows_are_scanned_with_the_columns_of_their_cell_and_without_damaged_files(
    store: Store,
) -> None:
    other, broken = cell_with(seed=1, first=3, last=5), cell_with(seed=2)
    for cell in (CELL, other, broken):
        store.write(cell, rows_of(cell), ORIGIN)
    _truncate(store.path(broken.key))
    rows = store.scan().sort("seed", "index").collect()
    assert rows["seed"].to_list() == [0, 0, 0, 1, 1]
    assert rows["index"].to_list() == [0, 1, 2, 3, 4]
    assert rows["attack"].unique().to_list() == ["greedy"]
    assert json.loads(rows["settings"][0]) == dict(CELL.attack)
    assert rows["victim_models"][0].to_list() == ["pinprick:mnist_cnn_pgd_at"]


def test_rows_other_than_were_written_are_not_scanned(store: Store) -> None:
    other = cell_with(seed=1)
    for cell in (CELL, other):
        store.write(cell, rows_of(cell), ORIGIN)
    _tamper(store.path(other.key))
    assert store.scan().collect()["cell"].unique().to_list() == [CELL.key]


def test_a_store_of_damaged_files_says_so(store: Store) -> None:
    store.write(CELL, rows_of(CELL), ORIGIN)
    _truncate(store.path(CELL.key))
    with pytest.raises(BadInput, match="has no finished cells; 1 file is damaged"):
        store.scan()


PUBLISHED = [path.parent for path in sorted((ROOT / "results").rglob("store.json"))]


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_no_file_of_a_published_store_is_damaged(folder: Path) -> None:
    assert Store(folder).damaged() == []


def test_an_empty_store_has_nothing_to_scan(store: Store) -> None:
    with pytest.raises(BadInput, match="has no finished cells"):
        store.scan()


def test_a_table_with_other_rows_than_the_cell_is_a_bug(store: Store) -> None:
    with pytest.raises(ValueError, match="3 rows for the 4 images"):
        store.write(cell_with(last=4), rows_of(CELL), ORIGIN)


def test_the_hash_sees_every_kind_of_column() -> None:
    table = rows_of(CELL)
    for name in table.column_names:
        without = table.drop_columns([name])
        assert rows_sha256(without) == rows_sha256(table, without=[name])
        place, turned = table.column_names.index(name), table.column(name).take([2, 1, 0])
        changed = rows_sha256(table.set_column(place, name, turned)) != rows_sha256(table)
        assert changed == (name not in ("cell", "remark"))  # which read the same both ways


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.json").write_text('{"format": 2}')
    with pytest.raises(BadInput, match="has format 2, this version of pinprick reads up to 1"):
        Store(tmp_path)


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(BadInput, match="holds other files"):
        Store(tmp_path).prepare()


def test_a_full_disk_leaves_what_is_finished_and_no_part_of_a_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(CELL, rows_of(CELL), ORIGIN)

    def full(path: Path, content: bytes) -> int:
        path.open("wb").close()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    other = cell_with(seed=1)
    with pytest.raises(BadInput, match=r"cannot write .*: No space left on device"):
        store.write(other, rows_of(other), ORIGIN)
    assert store.has(CELL)
    assert not store.has(other)
    assert not list(store.folder.rglob(".*.tmp"))


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Root may write everywhere, so the refusal of the disk is injected."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    store.write(CELL, rows_of(CELL), ORIGIN)
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(BadInput, match=rf"cannot write to .*: {os.strerror(number)}; give --store"):
        store.prepare()
    assert store.has(CELL)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("x")
    with pytest.raises(BadInput, match=r"cannot write .*; give --store a folder"):
        Store(tmp_path / "store").prepare()


def test_two_writers_of_one_cell_leave_one_whole_file(store: Store) -> None:
    table, errors = rows_of(CELL), []

    def write() -> None:
        try:
            for _ in range(10):
                store.write(CELL, table, ORIGIN)
                assert store.has(CELL)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert store.damaged() == []
    assert not list(store.folder.rglob(".*.tmp"))


def test_old_leftovers_of_killed_runs_are_removed_and_new_ones_stay(store: Store) -> None:
    old, new = (store.folder / "cells" / f".{name}.parquet.1.tmp" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, time.time() - 100_000))
    store.prepare()
    assert not old.exists()
    assert new.exists()


def test_ten_thousand_rows_of_photographs_take_less_than_20_mb() -> None:
    published = Store(ROOT / "results" / "leaderboard")
    rows = {
        published.path(key): len(cell)
        for key, (cell, _) in published.cells().items()
        if cell.model == "efficientnet_lite0"
    }
    assert sum(rows.values()) > 4000
    assert sum(path.stat().st_size for path in rows) / sum(rows.values()) < 20e6 / 10_000
