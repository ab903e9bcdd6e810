"""A folder of finished cells, one Parquet file each.

    store.json                      the format of the store
    cells/ab/abcd….parquet          the rows of the cell with this key, one per image

Files are written whole. A cell is finished when its file opens and holds the rows it should. All
other files are damaged: they are never read as rows, and a run writes them again.
"""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pinprick.bench.cell import Cell, canonical
from pinprick.bench.cell_file import (
    FORMAT,
    Damaged,
    Origin,
    read_about,
    read_cell_file,
    write_cell_file,
)
from pinprick.bench.extra import needed
from pinprick.errors import BadInput
from pinprick.files import open_folder, write_text
from pinprick.json_text import read_json_file

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_MARK, _CELLS = "store.json", "cells"
_LEFT_OVER = 86_400  # seconds after which a temporary file belongs to no run any more
_READERS = 8  # threads that read metadata: they wait for the disk most of the time


class Store:
    """The finished cells in a folder.

    Args:
        folder: The folder. ``prepare`` makes it; a store that is only read must be there.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        mark = self.folder / _MARK
        if mark.exists():
            found = read_json_file(mark)
            number = found.get("format") if isinstance(found, dict) else None
            if not isinstance(number, int):
                raise BadInput(f"{mark} is not the mark of a store; name another folder")
            if number > FORMAT:
                raise BadInput(
                    f"the store {self.folder} has format {number}, this version of pinprick reads "
                    f"up to {FORMAT}; install the newer version, or name another folder"
                )

    def prepare(self) -> None:
        """Make the folder and its mark; ``BadInput`` where nothing can be written."""
        open_folder(self.folder, advice="give --store a folder that can be written")
        if not (self.folder / _MARK).exists():
            if any(self.folder.iterdir()) and not (self.folder / _CELLS).is_dir():
                raise BadInput(f"{self.folder} holds other files; give --store a folder of its own")
            write_text(self.folder / _MARK, json.dumps({"format": FORMAT}) + "\n")
        open_folder(self.folder / _CELLS)
        for file in (self.folder / _CELLS).rglob(".*.tmp"):  # left by runs that were killed
            if time.time() - file.stat().st_mtime > _LEFT_OVER:
                file.unlink(missing_ok=True)

    def path(self, key: str) -> Path:
        return self.folder / _CELLS / key[:2] / f"{key}.parquet"

    def has(self, cell: Cell) -> bool:
        """Whether the cell is finished: its file can be read and holds all of its rows."""
        if not self.path(cell.key).exists():
            return False
        try:
            return self.read(cell.key)[0] == cell
        except Damaged:
            return False

    def failed(self, cell: Cell) -> bool:
        """Whether the cell is finished, and some of its rows hold an error."""
        return self.has(cell) and any(self.read(cell.key)[2].column("error").to_pylist())

    def write(self, cell: Cell, table: "pa.Table", origin: Origin) -> None:
        """Write the rows of a cell, whole or not at all."""
        write_cell_file(self.path(cell.key), cell, table, origin)

    def read(self, key: str) -> tuple[Cell, Origin, "pa.Table"]:
        """A finished cell, where its rows come from, and the rows; ``Damaged`` if it is not one."""
        return read_cell_file(self.path(key))

    def keys(self) -> list[str]:
        """The keys of all cell files, also of damaged ones, in order."""
        return sorted(path.stem for path in self._files())

    def damaged(self) -> list[Path]:
        """Files among the cells that are truncated, changed, of another program, or newer."""
        wrong = list(self.foreign())
        for path in self._files():
            try:
                self.read(path.stem)
            except Damaged:
                wrong.append(path)
        return sorted(wrong)

    def cells(self) -> dict[str, tuple[Cell, Origin]]:
        """Cell and origin of every file whose metadata can be read, by key; no row is read."""
        paths = sorted(self._files())
        with ThreadPoolExecutor(_READERS) as pool:
            found = pool.map(_read_about, paths)
            return {
                path.stem: one for path, one in zip(paths, found, strict=True) if one is not None
            }

    def scan(self) -> "pl.LazyFrame":
        """All rows, with the columns of their cells beside them; read when they are needed.

        Only metadata is checked here; ``damaged`` reads every row.
        """
        rows, cells = self.rows_and_cells()
        return rows.join(cells.lazy(), on="cell", how="left", maintain_order="left")

    def rows_and_cells(self) -> "tuple[pl.LazyFrame, pl.DataFrame]":
        """All rows, and apart from them one line per cell; ``cell`` joins the two."""
        polars = needed("polars")
        cells = self.cells()
        if not cells:
            raise BadInput(f"the store {self.folder} has no finished cells")
        rows = polars.scan_parquet([self.path(key) for key in cells], glob=False)
        return rows, polars.DataFrame([_columns(key, cell) for key, (cell, _) in cells.items()])

    def _files(self) -> Iterator[Path]:
        for path in (self.folder / _CELLS).glob("*/*.parquet"):
            if path == self.path(path.stem) and not path.name.startswith("."):
                yield path

    def foreign(self) -> Iterator[Path]:
        """Files among the cells whose names are not those of cells; temporary ones left out."""
        cells = set(self._files())
        for path in (self.folder / _CELLS).rglob("*"):
            if path.is_file() and path not in cells and not path.name.startswith("."):
                yield path


def existing_store(folder: str | Path) -> Store:
    """The store in a folder; ``BadInput`` if there is none, as nothing can be read from it."""
    if not Path(folder, _CELLS).is_dir():
        raise BadInput(f"{folder} is not a store: it has no folder {_CELLS}")
    return Store(folder)


def _read_about(path: Path) -> tuple[Cell, Origin] | None:
    try:
        about = read_about(path, needed("pyarrow.parquet").read_metadata(path))
        return about.cell, about.origin
    except Exception:  # damaged in one of many ways
        return None


def _columns(key: str, cell: Cell) -> dict[str, Any]:
    """The columns of a cell beside its rows."""
    plain = {"max_passes": None, **cell.plain()}
    settings = plain.pop("attack")
    names = [name for name, _ in cell.victims]
    del plain["victims"]
    return {
        "cell": key,
        "attack": settings["name"],
        "settings": canonical(settings),
        **plain,
        "victim_models": names,
    }
