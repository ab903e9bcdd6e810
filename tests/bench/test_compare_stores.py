"""Two stores compared row by row, and several merged into one."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from bench.cells import CELL, ORIGIN, cell_with, rows_of
from pinprick import BadInput
from pinprick.bench.cell import Cell
from pinprick.bench.compare_stores import diff_stores, merge_stores
from pinprick.bench.store import Store

OTHER = cell_with(seed=1)


def store_of(folder: Path, *cells: Cell, pixels: int = 2, later: bool = False) -> Store:
    """A store of some cells; a later run took other times."""
    store = Store(folder)
    store.prepare()
    for cell in cells:
        table = rows_of(cell, pixels=pixels)
        if later:
            times = pa.array([9.0] * len(cell))
            table = table.set_column(table.column_names.index("seconds"), "seconds", times)
        store.write(cell, table, replace(ORIGIN, seconds=9.0) if later else ORIGIN)
    return store


def test_stores_that_differ_in_times_alone_are_the_same(tmp_path: Path) -> None:
    store_of(tmp_path / "a", CELL, OTHER)
    store_of(tmp_path / "b", CELL, OTHER, later=True)
    difference = diff_stores(tmp_path / "a", tmp_path / "b")
    assert not difference
    assert difference.same == 2


def test_every_row_that_differs_is_listed_with_both_values(tmp_path: Path) -> None:
    store_of(tmp_path / "a", CELL)
    store_of(tmp_path / "b", CELL, pixels=3)
    difference = diff_stores(tmp_path / "a", tmp_path / "b")
    assert difference
    assert [(row.index, row.columns) for row in difference.rows] == [
        (0, {"pixels": (2, 3)}),
        (1, {"pixels": (2, 3)}),
    ]
    assert difference.plain()["rows"][0]["cell"] == CELL.key


def test_cells_that_one_store_lacks_are_a_difference(tmp_path: Path) -> None:
    store_of(tmp_path / "a", CELL)
    store_of(tmp_path / "b", OTHER)
    difference = diff_stores(tmp_path / "a", tmp_path / "b")
    assert difference
    assert (difference.only_first, difference.only_second) == ([CELL], [OTHER])


def test_a_damaged_file_is_a_difference_and_not_compared(tmp_path: Path) -> None:
    store_of(tmp_path / "a", CELL)
    path = store_of(tmp_path / "b", CELL).path(CELL.key)
    path.write_bytes(path.read_bytes()[:-20])
    difference = diff_stores(tmp_path / "a", tmp_path / "b")
    assert difference.damaged == [path]
    assert (difference.same, difference.rows) == (0, [])


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_is_no_store_is_refused(tmp_path: Path, there: bool) -> None:
    store_of(tmp_path / "a", CELL)
    if there:
        (tmp_path / "b").mkdir()
    with pytest.raises(BadInput, match="b is not a store"):
        diff_stores(tmp_path / "a", tmp_path / "b")
    with pytest.raises(BadInput, match="b is not a store"):
        merge_stores([tmp_path / "b"], tmp_path / "c")


def test_merging_copies_each_cell_once_and_leaves_the_first_times(tmp_path: Path) -> None:
    first = store_of(tmp_path / "a", CELL)
    store_of(tmp_path / "b", CELL, OTHER, later=True)
    merged = merge_stores([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert (merged.added, merged.known, merged.damaged) == (2, 0, [])
    store = Store(tmp_path / "c")
    assert store.keys() == sorted([CELL.key, OTHER.key])
    assert store.path(CELL.key).read_bytes() == first.path(CELL.key).read_bytes()
    again = merge_stores([tmp_path / "b"], tmp_path / "c")
    assert (again.added, again.known) == (0, 2)
    assert not store.damaged()


def test_different_rows_for_one_cell_are_refused_and_nothing_is_merged(tmp_path: Path) -> None:
    store_of(tmp_path / "a", OTHER, CELL)
    store_of(tmp_path / "b", CELL, pixels=3)
    with pytest.raises(BadInput, match=f"different rows for greedy on .* cell {CELL.key}"):
        merge_stores([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_rows_that_the_target_has_already_are_compared_too(tmp_path: Path) -> None:
    store_of(tmp_path / "a", CELL)
    before = store_of(tmp_path / "c", CELL, pixels=3).path(CELL.key).read_bytes()
    with pytest.raises(BadInput, match="nothing was merged"):
        merge_stores([tmp_path / "a"], tmp_path / "c")
    assert Store(tmp_path / "c").path(CELL.key).read_bytes() == before


def test_a_damaged_file_is_not_merged_and_a_sound_one_replaces_it(tmp_path: Path) -> None:
    store_of(tmp_path / "a", CELL, OTHER)
    for name in ("b", "c"):
        store_of(tmp_path / name, CELL).path(CELL.key).write_bytes(b"PAR1")
    merged = merge_stores([tmp_path / "b", tmp_path / "a"], tmp_path / "c")
    assert merged.added == 2
    assert [path.parts[-4] for path in merged.damaged] == ["c", "b"]
    assert not Store(tmp_path / "c").damaged()
