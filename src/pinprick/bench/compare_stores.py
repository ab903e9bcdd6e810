"""Where two stores differ, and several stores as one.

Times differ from run to run, and so does the origin of the rows. Neither counts as a difference.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import Damaged, rows_sha256
from pinprick.bench.row_schema import TIMES
from pinprick.bench.store import Store, existing_store
from pinprick.errors import BadInput, MissingExtra
from pinprick.files import atomic_write, sync_folder, writing


@dataclass(frozen=True)
class RowDifference:
    """A row that differs between two stores.

    Attributes:
        cell: The cell.
        index: Index of the image in the subset.
        columns: The columns that differ, with the value in the first and in the second store.
    """

    cell: Cell
    index: int
    columns: dict[str, tuple[Any, Any]]

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"cell": self.cell.key, "index": self.index, "columns": self.columns}


@dataclass(frozen=True, kw_only=True)
class StoreDifference:
    """Where two stores differ.

    Attributes:
        same: Number of cells whose rows are the same.
        rows: The rows that differ.
        only_first: Cells that only the first store has.
        only_second: Cells that only the second store has.
        damaged: Files that are not rows of a cell, in either store.
    """

    same: int
    rows: list[RowDifference]
    only_first: list[Cell]
    only_second: list[Cell]
    damaged: list[Path]

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return bool(self.rows or self.only_first or self.only_second or self.damaged)

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "same": self.same,
            "rows": [row.plain() for row in self.rows],
            "only_first": [cell.key for cell in self.only_first],
            "only_second": [cell.key for cell in self.only_second],
            "damaged": [str(path) for path in self.damaged],
        }


@dataclass(frozen=True)
class Merged:
    """What was merged: the number of new cells, of cells known before, and damaged files."""

    added: int
    known: int
    damaged: list[Path]

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {**vars(self), "damaged": [str(path) for path in self.damaged]}


def diff_stores(first: str | Path, second: str | Path) -> StoreDifference:
    """All rows that differ between two stores, apart from times."""
    stores = existing_store(first), existing_store(second)
    damaged = sorted(path for store in stores for path in store.damaged())
    ours, theirs = (_sound_cells(store, damaged) for store in stores)
    rows: list[RowDifference] = []
    same = 0
    for key in sorted(ours.keys() & theirs.keys()):
        tables = [store.read(key)[2] for store in stores]
        if _same(*tables):
            same += 1
        else:
            rows += _different_rows(ours[key], *tables)
    return StoreDifference(
        same=same,
        rows=rows,
        only_first=[ours[key] for key in sorted(ours.keys() - theirs.keys())],
        only_second=[theirs[key] for key in sorted(theirs.keys() - ours.keys())],
        damaged=damaged,
    )


def merge_stores(folders: Sequence[str | Path], into: str | Path) -> Merged:
    """Copy the cells of all stores to one, which may hold cells already.

    Of files with the same rows the first is copied. ``BadInput`` where two files of a cell have
    different rows; then nothing is copied at all.
    """
    target = Store(into)
    stores = [existing_store(folder) for folder in folders]
    chosen: dict[str, tuple[Store, str]] = {}
    damaged: list[Path] = []
    for store in [target, *stores]:
        for key in store.keys():  # noqa: SIM118, a store is no dict
            try:
                cell, _, table = store.read(key)
            except Damaged:
                damaged.append(store.path(key))
                continue
            found = rows_sha256(table, without=TIMES)
            holder, known = chosen.setdefault(key, (store, found))
            if known != found:
                raise BadInput(
                    f"{holder.folder} and {store.folder} have different rows for {cell.title}, "
                    f"cell {key}; nothing was merged. To see the rows: pinprick bench diff "
                    f"{holder.folder} {store.folder}"
                )
    target.prepare()
    new = {key: store for key, (store, _) in chosen.items() if store is not target}
    for key, store in new.items():
        _copy(store.path(key), target.path(key))
    with suppress(MissingExtra):  # cells can be merged without polars
        target.update_index()
    return Merged(len(new), len(chosen) - len(new), damaged)


def _sound_cells(store: Store, damaged: Sequence[Path]) -> dict[str, Cell]:
    wrong = set(damaged)
    cells = store.cells().items()
    return {key: cell for key, (cell, _) in cells if store.path(key) not in wrong}


def _same(first: Any, second: Any) -> bool:
    return rows_sha256(first, without=TIMES) == rows_sha256(second, without=TIMES)


def _different_rows(cell: Cell, first: Any, second: Any) -> list[RowDifference]:
    """The rows that differ, by index; one that a store lacks differs in its index."""
    ours, theirs = ({row["index"]: row for row in table.to_pylist()} for table in (first, second))
    found = []
    for index in sorted(ours.keys() | theirs.keys()):
        one, other = ours.get(index, {}), theirs.get(index, {})
        columns = {
            name: (one.get(name), other.get(name))
            for name in {**one, **other}
            if name not in TIMES and not _equal(one.get(name), other.get(name))
        }
        if columns:
            found.append(RowDifference(cell, index, columns))
    return found


def _equal(one: Any, other: Any) -> bool:
    """Equal to the last bit: 0.0 and -0.0 differ, NaN equals itself."""
    return repr(one) == repr(other)


def _copy(source: Path, target: Path) -> None:
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target, flush=True) as temporary:
        shutil.copyfile(source, temporary)
    stamp = source.stat()
    os.utime(target, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # old enough for the index
    sync_folder(target.parent)
