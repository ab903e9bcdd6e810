"""The index of a store: one file with what the boards need of every cell.

    index.arrow                     one row per cell, with some columns of its rows as lists

Reading one file takes a fraction of the time of reading thousands. The index is derived from the
files of the cells and never trusted over them: an entry counts while the file of its cell has the
same size and time of change. All other entries are made again, from files whose rows have the hash
that was written. A store without an index, or with one that cannot be written, is read as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pinprick.bench.cell import Cell, canonical
from pinprick.bench.cell_file import Stamp, read_about, stamp_of
from pinprick.bench.extra import needed
from pinprick.bench.row_schema import ROWS
from pinprick.errors import BadInput
from pinprick.files import atomic_write

if TYPE_CHECKING:
    import polars as pl
else:
    pl = needed("polars")

NAME = "index.arrow"
FEWEST = 50  # cells: a smaller store is read as fast without an index
_ROW = (
    *("index", "label", "target", "correct", "skipped", "success", "pixels", "elements"),
    *("forwards", "backwards", "first_success_forwards", "seconds", "victims", "victims_clean"),
    *("error", "shape"),
)
_TEXT = ("attack", "settings", "code", "model", "weights", "data", "data_hash", "goal")
_NUMBERS = ("revision", "first", "last", "seed", "batch_size", "threads")
_CELL: dict[str, Any] = {
    "cell": pl.String,
    **dict.fromkeys((*_TEXT, "precision", "device", "speed"), pl.String),
    **dict.fromkeys((*_NUMBERS, "max_forwards", "max_backwards", "max_passes"), pl.Int64),
    "dense": pl.Boolean,
    "labels_by_number": pl.Boolean,
    "victim_models": pl.List(pl.String),
    "victim_weights": pl.List(pl.String),
}
_FILE = {
    "size": pl.Int64,
    "mtime_ns": pl.Int64,
}


def indexed_cells(folder: Path, files: Mapping[str, Path]) -> "pl.LazyFrame":
    """One row per cell, in the order of keys; brings the index up to date.

    Args:
        folder: The folder of the store.
        files: The files of the cells, by key. The hashes of their rows were checked.
    """
    found = {key: stamp_of(path) for key, path in files.items()}
    stamps = {key: stamp for key, stamp in found.items() if stamp is not None}
    index = _read(folder) if len(files) >= FEWEST else None
    index = pl.DataFrame(schema=_schema()).lazy() if index is None else index
    entries = _stamps_in(index)
    known = [key for key, stamp in entries.items() if stamps.get(key) == stamp]
    left = {key: files[key] for key in sorted(stamps.keys() - set(known))}
    if not left and len(known) == len(entries):
        return index
    old = index.filter(pl.col("cell").is_in(known)).collect()
    table = pl.concat([old, _entries(left, stamps)]).sort("cell")
    if len(files) >= FEWEST:
        _write(folder, table)
    return table.lazy()


def sound_cells(folder: Path) -> dict[str, Stamp]:
    """Cells whose hash was checked, with the stamps of their files then."""
    index = _read(folder)
    return {} if index is None else _stamps_in(index)


def rows_of(index: "pl.LazyFrame") -> "pl.LazyFrame":
    """The rows of indexed cells."""
    length = pl.col("index").list.len()
    # each column by itself, so that only the columns that are used are read
    return index.select(
        pl.col("cell").repeat_by(length).explode(), *(pl.col(name).explode() for name in _ROW)
    )


def cells_of(index: "pl.LazyFrame") -> "pl.DataFrame":
    """The cells, without their rows."""
    return index.select(list(_CELL)).collect()


def remove_index(folder: Path) -> None:
    """Remove the index, so that every file is read again."""
    with suppress(OSError):
        (folder / NAME).unlink(missing_ok=True)


def cell_columns(cell: Cell) -> dict[str, Any]:
    """The columns of a cell beside its rows."""
    return {
        "max_passes": cell.max_passes,
        "speed": cell.speed,
        "labels_by_number": cell.labels_by_number,
        **cell.plain(),
        "cell": cell.key,
        "attack": cell.attack["name"],
        "settings": canonical(cell.attack),
        "victim_models": [name for name, _ in cell.victims],
        "victim_weights": [weights for _, weights in cell.victims],
    }


def cells_frame(cells: Sequence[Cell]) -> "pl.DataFrame":
    """One line per cell."""
    return pl.DataFrame([cell_columns(cell) for cell in cells], schema=_CELL)


def _schema() -> dict[str, Any]:
    return {**_CELL, **_FILE, **{name: pl.List(kind) for name, kind in _row_schema().items()}}


def _row_schema() -> dict[str, Any]:
    empty = pl.DataFrame(pl.from_arrow(ROWS.empty_table().select(_ROW)))
    return dict(empty.schema)


def _read(folder: Path) -> "pl.LazyFrame | None":
    """The index, as it is in the file now; None if there is none, or one of another version."""
    try:
        index = pl.scan_ipc((folder / NAME).read_bytes())
        return index if dict(index.collect_schema()) == _schema() else None
    except (OSError, pl.exceptions.PolarsError):
        return None


def _stamps_in(index: "pl.LazyFrame") -> dict[str, Stamp]:
    """The stamp of each file, by key."""
    lines = index.select("cell", "size", "mtime_ns").collect().iter_rows()
    return {key: Stamp(size, mtime_ns) for key, size, mtime_ns in lines}


def _write(folder: Path, table: "pl.DataFrame") -> None:
    """Write the entries of all settled files; nothing where the disk refuses."""
    settled = [stamp.settled for stamp in _stamps_in(table.lazy()).values()]
    with suppress(BadInput), atomic_write(folder / NAME) as temporary:
        table.filter(pl.Series(settled, dtype=pl.Boolean)).write_ipc(temporary, compression="lz4")


def _entries(files: Mapping[str, Path], stamps: Mapping[str, Stamp]) -> "pl.DataFrame":
    """Entries made from the files of cells; damaged files have none."""
    about = {key: read_about(path) for key, path in files.items()}
    cells = {key: one.cell for key, one in about.items() if one is not None}
    rows = pl.concat(
        [
            pl.DataFrame(schema={"cell": pl.String, **_row_schema()}),
            *_rows([files[key] for key in cells]),
        ]
    )
    lists = rows.group_by("cell", maintain_order=True).agg(pl.col(_ROW))
    entries = cells_frame(list(cells.values())).with_columns(
        size=pl.Series([stamps[key].size for key in cells], dtype=pl.Int64),
        mtime_ns=pl.Series([stamps[key].mtime_ns for key in cells], dtype=pl.Int64),
    )
    whole = pl.col("index").list.len() == pl.col("last") - pl.col("first")
    return entries.join(lists, on="cell").filter(whole).select(list(_schema()))


def _rows(paths: Sequence[Path]) -> "Iterator[pl.DataFrame]":
    """The rows of all files; where some cannot be read, of the others."""
    if not paths:
        return
    with suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        rows = pl.scan_parquet(list(paths), glob=False).select("cell", *_ROW).collect()
        if dict(rows.schema) == {"cell": pl.String, **_row_schema()}:
            yield rows
            return
    if len(paths) > 1:
        half = len(paths) // 2
        yield from _rows(paths[:half])
        yield from _rows(paths[half:])
