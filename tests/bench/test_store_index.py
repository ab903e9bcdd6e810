"""The index gives what the files of the cells hold, and is made again where it does not."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

from bench.cells import ORIGIN, cell_with, rows_of
from pinprick.bench import cell_file, store_index
from pinprick.bench import store as store_module
from pinprick.bench.cell import Cell
from pinprick.bench.compare_stores import merge_stores
from pinprick.bench.row_schema import ROWS
from pinprick.bench.status import status_of
from pinprick.bench.store import Store

CELLS = [
    cell_with(seed=seed, max_forwards=None if seed else 7, labels_by_number=seed == 2)
    for seed in range(4)
]


def whole_rows(cell: Cell, *, pixels: int = 2, error: str = "") -> pa.Table:
    """Rows with all columns, most of them null."""
    count = len(cell)
    columns = {name: pa.nulls(count, ROWS.field(name).type) for name in ROWS.names}
    columns |= {
        "cell": [cell.key] * count,
        "index": list(range(cell.first, cell.last)),
        "success": [True] * count,
        "pixels": [pixels] * count,
        "victims": [[1]] * count,
        "shape": [[1, 2, 2]] * count,
        "error": [error] * count,
    }
    return pa.table(columns, schema=ROWS)


def write(store: Store, cell: Cell, *, pixels: int = 2, error: str = "", age: int = 100) -> None:
    """Write a cell whose file is some seconds old."""
    store.write(cell, whole_rows(cell, pixels=pixels, error=error), ORIGIN)
    make_older(store.path(cell.key), age)


def make_older(path: Path, seconds: int) -> None:
    now = path.stat().st_mtime_ns
    os.utime(path, ns=(now, now - seconds * 10**9))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(store_index, "FEWEST", 1)
    one = Store(tmp_path / "store")
    one.prepare()
    for cell in CELLS:
        write(one, cell)
    return one


def index_of(store: Store) -> Path:
    return store.folder / store_index.NAME


def pixels_of(store: Store) -> dict[str, int]:
    rows = store.rows_and_cells()[0].collect()
    return {str(key): int(pixels) for key, pixels in rows.select("cell", "pixels").iter_rows()}


def assert_as_in_the_files(store: Store) -> None:
    rows, cells = store.rows_and_cells()
    files, same_cells = store.rows_and_cells(whole=True)
    found = rows.collect()
    assert_frame_equal(found, files.select(found.columns).collect())
    assert_frame_equal(cells, same_cells)


def refuse_cell_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a file of a cell was read")

    monkeypatch.setattr(store_index, "read_about", refuse)
    monkeypatch.setattr(pl, "scan_parquet", refuse)
    monkeypatch.setattr(store_module, "read_cell_file", refuse)


def test_the_index_holds_what_the_files_hold(store: Store) -> None:
    for _ in range(2):  # made from the files, and then read
        assert_as_in_the_files(store)
    assert index_of(store).exists()


def test_a_second_reading_opens_no_file_of_a_cell(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.update_index()
    refuse_cell_files(monkeypatch)
    assert set(pixels_of(Store(store.folder))) == {cell.key for cell in CELLS}


def test_a_merged_store_has_its_index(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge_stores([store.folder], tmp_path / "merged")
    refuse_cell_files(monkeypatch)
    assert set(pixels_of(Store(tmp_path / "merged"))) == {cell.key for cell in CELLS}


def test_changed_new_and_removed_files_are_noticed(store: Store) -> None:
    store.update_index()
    write(store, CELLS[0], pixels=5, age=50)
    store.path(CELLS[1].key).unlink()
    added = cell_with(seed=9, first=3, last=5)
    write(store, added)
    found = pixels_of(store)
    assert found[CELLS[0].key] == 5
    assert CELLS[1].key not in found
    assert added.key in found
    assert_as_in_the_files(store)


def test_a_file_that_may_still_change_unnoticed_is_read_again(store: Store) -> None:
    write(store, CELLS[0], age=0)
    before = pixels_of(store)
    stamp = store.path(CELLS[0].key).stat()
    store.write(CELLS[0], whole_rows(CELLS[0], pixels=3), ORIGIN)
    assert store.path(CELLS[0].key).stat().st_size == stamp.st_size
    os.utime(store.path(CELLS[0].key), ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert before[CELLS[0].key] == 2
    assert pixels_of(store)[CELLS[0].key] == 3


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"other"], ids=str)
def test_a_damaged_index_is_made_again(store: Store, content: bytes) -> None:
    index_of(store).write_bytes(content)
    assert_as_in_the_files(store)
    assert index_of(store).stat().st_size > len(content)


def test_a_truncated_index_is_made_again(store: Store) -> None:
    store.update_index()
    index_of(store).write_bytes(index_of(store).read_bytes()[:-100])
    assert_as_in_the_files(store)


def test_an_index_with_other_columns_is_made_again(store: Store) -> None:
    pl.DataFrame({"cell": [CELLS[0].key]}).write_ipc(index_of(store))
    assert_as_in_the_files(store)


def test_damaged_files_are_left_out_and_the_others_are_read(store: Store) -> None:
    truncated, foreign, narrow, long = (store.path(cell.key) for cell in CELLS)
    truncated.write_bytes(truncated.read_bytes()[:-20])
    pl.DataFrame({"x": [1]}).write_parquet(foreign)
    store.write(CELLS[2], rows_of(CELLS[2]), ORIGIN)  # lacks columns
    sound = cell_with(seed=11)
    write(store, sound)
    for _ in range(2):
        assert set(pixels_of(store)) == {CELLS[3].key, sound.key}
    assert long.exists()
    assert narrow.exists()


def test_a_file_with_too_few_rows_is_left_out(store: Store) -> None:
    cell = CELLS[0]
    about = store.path(cell.key)
    text = pl.read_parquet_metadata(about)
    pl.read_parquet(about).head(2).write_parquet(about, metadata=text)
    assert cell.key not in pixels_of(store)


def test_a_file_with_other_rows_than_were_written_is_left_out(store: Store) -> None:
    path = store.path(CELLS[0].key)
    text = pl.read_parquet_metadata(path)
    pl.read_parquet(path).with_columns(pixels=9).write_parquet(path, metadata=text)
    make_older(path, 50)
    for _ in range(2):
        assert set(pixels_of(Store(store.folder))) == {cell.key for cell in CELLS[1:]}
    assert CELLS[0].key not in Store(store.folder).rows_and_cells(whole=True)[1]["cell"]
    assert Store(store.folder).damaged(again=False) == [path]


def test_the_hash_of_a_file_is_checked_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.update_index()
    refuse_cell_files(monkeypatch)
    assert Store(store.folder).damaged(again=False) == []


def test_a_store_that_cannot_be_written_is_read(store: Store) -> None:
    index_of(store).mkdir()
    assert_as_in_the_files(store)
    assert not list(store.folder.glob(".*.tmp"))


def test_a_small_store_has_no_index(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_index, "FEWEST", len(CELLS) + 1)
    assert_as_in_the_files(store)
    assert not index_of(store).exists()


def test_several_readers_and_a_writer_at_once_find_whole_cells(store: Store) -> None:
    errors: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(5):
                assert set(pixels_of(Store(store.folder)).values()) == {2}
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for seed in range(20, 30):
        write(store, cell_with(seed=seed))
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(pixels_of(store)) == len(CELLS) + 10


def test_a_cell_that_was_checked_is_not_hashed_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(map(store.has, CELLS))
    store.update_index()
    refuse_cell_files(monkeypatch)
    for one in (store, Store(store.folder)):
        assert all(map(one.has, CELLS))
        assert not one.has(cell_with(seed=99))


def test_a_damaged_cell_is_not_taken_for_checked_after_an_update_of_the_index(store: Store) -> None:
    path = store.path(CELLS[0].key)
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    make_older(path, 100)
    store.update_index()
    assert not Store(store.folder).has(CELLS[0])


def test_a_changed_file_is_hashed_again(store: Store) -> None:
    assert store.has(CELLS[0])
    path = store.path(CELLS[0].key)
    path.write_bytes(path.read_bytes()[:-20])
    assert not store.has(CELLS[0])


def test_damage_without_a_new_time_is_found_by_status_and_then_by_a_run(store: Store) -> None:
    assert all(map(store.has, CELLS))
    store.update_index()
    path = store.path(CELLS[0].key)
    stamp, content = path.stat(), bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    found = status_of(CELLS, Store(store.folder))
    assert found.damaged == [path]
    assert found.finished == len(CELLS) - 1
    assert not Store(store.folder).has(CELLS[0])


def test_errors_of_a_checked_cell_are_seen(store: Store) -> None:
    failing = cell_with(seed=12)
    write(store, failing, error="no luck")
    assert store.failed(failing)
    assert not store.failed(CELLS[0])


def test_metadata_of_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert cell_file.read_about(tmp_path / "none.parquet") is None


def test_a_run_needs_no_polars(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['polars'] = None\n"
        "from pinprick.bench.plan_file import read_plan\n"
        "from pinprick.bench.cache import Cache\n"
        "from pinprick.bench.store import Store\n"
        "from pinprick.bench.engines.run_cells import run_cells\n"
        "store = Store(sys.argv[1]); store.prepare()\n"
        "run_cells([], store, print); print(len(store.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "store")], capture_output=True, text=True
    )
    assert done.stdout.strip() == "0", done.stderr
