"""A folder of finished cells, one Parquet file each.

    store.json                      the format of the store
    cells/ab/abcd….parquet          the rows of the cell with this key, one per image
    index.arrow                     derived from the cells, for reading many of them at once

Files are written whole. A cell is finished when its file opens and holds the rows it should. All
other files are damaged: they are never read as rows, and a run writes them again. A file of a newer
version is not damaged: it is refused, and stays as it is.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import (
    FORMAT,
    Damaged,
    Origin,
    Stamp,
    errors_in,
    read_about,
    read_cell_file,
    stamp_of,
    write_cell_file,
)
from pinprick.bench.extra import needed
from pinprick.errors import BadInput, MissingExtra, counted
from pinprick.files import open_folder, write_text
from pinprick.json_text import read_json_file

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_MARK, _CELLS = "store.json", "cells"
_LEFT_OVER = (
    86_400_000_000_000  # nanoseconds after which a temporary file belongs to no run any more
)


class Store:
    """The finished cells in a folder.

    Args:
        folder: The folder. ``prepare`` makes it; a store that is only read must be there.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        number = self._format()
        if number is not None and number > FORMAT:
            raise BadInput(
                f"the store {self.folder} has format {number}, this version of pinprick reads "
                f"up to {FORMAT}; install the newer version, or name another folder"
            )

    def prepare(self) -> None:
        """Make the folder and its mark; ``BadInput`` where nothing can be written."""
        open_folder(self.folder, advice="give --store a folder that can be written")
        mark = self.folder / _MARK
        if not mark.exists():
            others = any(not path.name.startswith(".") for path in self.folder.iterdir())
            if others and not (self.folder / _CELLS).is_dir() and not mark.exists():
                raise BadInput(f"{self.folder} holds other files; give --store a folder of its own")
        if (self._format() or 0) < FORMAT:  # older versions then refuse the cells of this one
            write_text(mark, json.dumps({"format": FORMAT}) + "\n")
        open_folder(self.folder / _CELLS)
        for file in self.folder.rglob(".*.tmp"):  # left by runs that were killed
            stamp = stamp_of(file)  # None where its run has just renamed it
            if stamp and time.time_ns() - stamp.mtime_ns > _LEFT_OVER:
                file.unlink(missing_ok=True)

    def _format(self) -> int | None:
        """The format that the mark of the store names; None without a mark."""
        mark = self.folder / _MARK
        if not mark.exists():
            return None
        found = read_json_file(mark)
        number = found.get("format") if isinstance(found, dict) else None
        if not isinstance(number, int):
            raise BadInput(f"{mark} is not the mark of a store; name another folder")
        return number

    def path(self, key: str) -> Path:
        return self.folder / _CELLS / key[:2] / f"{key}.parquet"

    def has(self, cell: Cell) -> bool:
        """Whether the cell is finished: its file can be read and holds all of its rows."""
        return self._is_sound(cell.key)

    def _is_sound(self, key: str) -> bool:
        """Whether a file holds the rows that were written.

        The rows of a file are hashed once, and again where its size or time of change differ.
        ``BadInput`` if a newer version wrote the file, so that no run writes it again.
        """
        stamp = stamp_of(self.path(key))
        if stamp is None:
            return False
        if self._sound.get(key) == stamp:
            return True
        try:
            self.read(key)
        except Damaged:
            return False
        if stamp.settled:
            self._sound[key] = stamp
        return True

    def failed(self, cell: Cell) -> bool:
        """Whether the cell is finished, and something failed in its rows."""
        return bool(self.errors(cell))

    def errors(self, cell: Cell) -> Counter[str]:
        """What failed in the rows of a cell, and in how many; nothing if it is not finished."""
        return errors_in(self.path(cell.key)) if self.has(cell) else Counter()

    @cached_property
    def _sound(self) -> dict[str, Stamp]:
        """Cells whose rows were checked, with the stamps of their files then."""
        try:
            from pinprick.bench.store_index import sound_cells
        except MissingExtra:  # a run can do without polars
            return {}
        return sound_cells(self.folder)

    def write(self, cell: Cell, table: "pa.Table", origin: Origin) -> None:
        """Write the rows of a cell, whole or not at all."""
        write_cell_file(self.path(cell.key), cell, table, origin)

    def read(self, key: str) -> tuple[Cell, Origin, "pa.Table"]:
        """A finished cell, where its rows come from, and the rows; ``Damaged`` if it is not one."""
        return read_cell_file(self.path(key))

    def keys(self) -> list[str]:
        """The keys of all cell files, also of damaged ones, in order."""
        return sorted(path.stem for path in self._files())

    def damaged(self, *, again: bool = True) -> list[Path]:
        """Files among the cells that are truncated, changed, or of another program.

        ``BadInput`` if a newer version wrote one.

        Args:
            again: Whether to read also files that were checked and have the same time of change.
        """
        wrong = list(self.foreign())
        for path in self._files():
            known = self._sound.pop(path.stem, None) if again else None
            if not self._is_sound(path.stem):
                wrong.append(path)
                if known is not None and known == stamp_of(path):  # changed without a new time
                    self._remove_index()
        return sorted(wrong)

    def cells(self) -> dict[str, tuple[Cell, Origin]]:
        """Cell and origin of every file whose metadata can be read, by key; no row is read."""
        found = {path.stem: read_about(path) for path in sorted(self._files())}
        return {key: (one.cell, one.origin) for key, one in found.items() if one is not None}

    def scan(self) -> "pl.LazyFrame":
        """All rows, with the columns of their cells beside them; read when they are needed."""
        rows, cells = self.rows_and_cells(whole=True)
        return rows.join(cells.lazy(), on="cell", how="left", maintain_order="left")

    def rows_and_cells(self, *, whole: bool = False) -> "tuple[pl.LazyFrame, pl.DataFrame]":
        """All rows, and apart from them one line per cell; ``cell`` joins the two.

        Damaged files are left out.

        Args:
            whole: Give all columns of rows, from the files of all cells. By default rows have the
                columns that boards need, from the index.
        """
        from pinprick.bench.store_index import cells_frame, cells_of, rows_of

        if whole:
            found = self.cells()
            cells = cells_frame([cell for key, (cell, _) in found.items() if self._is_sound(key)])
        else:
            index = self.update_index()
            cells = cells_of(index)
        if not len(cells):
            wrong = len(self.damaged(again=False))
            but = f"; {counted(wrong, 'file')} {'is' if wrong == 1 else 'are'} damaged"
            raise BadInput(f"the store {self.folder} has no finished cells{but if wrong else ''}")
        if not whole:
            return rows_of(index), cells
        paths = [self.path(key) for key in cells["cell"]]
        return needed("polars").scan_parquet(paths, glob=False), cells

    def update_index(self) -> "pl.LazyFrame":
        """Bring the index up to date, and give it: one row per cell."""
        from pinprick.bench.store_index import indexed_cells

        files = {path.stem: path for path in self._files() if self._is_sound(path.stem)}
        return indexed_cells(self.folder, files)

    def _remove_index(self) -> None:
        from pinprick.bench.store_index import remove_index

        remove_index(self.folder)

    def _files(self) -> Iterator[Path]:
        for path in (self.folder / _CELLS).glob("*/*.parquet"):
            if path.parent.name == path.stem[:2] and not path.name.startswith("."):
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
