"""Stores of benchmarks below the working folder: which there are, their boards, cells and rows."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinprick.errors import BadInput, UnknownName
from pinprick.metrics.unit import check_unit

_DEPTH = 4  # folders below the working folder
_FOLDERS = 5_000  # that are looked into
_MOST = 100  # stores
_ROWS = 1_000  # of a cell that are listed
_SHOWN = (
    *("index", "label", "target", "skipped", "success", "pixels", "elements"),
    *("forwards", "backwards", "remark", "error"),
)


@dataclass(frozen=True)
class Stores:
    """The stores that lie below ``root``; links to folders are not followed."""

    root: Path

    def names(self) -> list[str]:
        """Their folders, relative to the working folder."""
        return sorted(self._found())

    def board(self, name: str, unit: str) -> dict[str, Any]:
        """The leaderboard of a store as tables of text."""
        from pinprick.report.leaderboard import leaderboard

        found = leaderboard(*self._open(name).rows_and_cells(), unit=check_unit(unit))
        tables = [
            {"caption": one.caption, "columns": list(one.columns), "rows": [*map(list, one.rows)]}
            for one in found.tables()
        ]
        return {"tables": tables, "explain": found.explain()}

    def cells(self, name: str) -> list[dict[str, Any]]:
        """One line per cell: what it is, and how many of its images were fooled."""
        import polars as pl

        rows, cells = self._open(name).rows_and_cells()
        fooled = pl.col("success") & pl.col("correct")

        def median(unit: str) -> pl.Expr:
            """Over correct images; a failure counts as infinity, and a row with an error not."""
            needed = pl.when("success").then(pl.col(unit).cast(pl.Float64)).otherwise(math.inf)
            return needed.filter(pl.col("correct")).median()

        counts = rows.group_by("cell").agg(
            images=pl.len(),
            correct=pl.col("correct").sum(),
            fooled=fooled.sum(),
            errors=(pl.col("error") != "").sum(),
            pixels=median("pixels"),
            elements=median("elements"),
        )
        about = cells.select("cell", "attack", "model", "data", "first", "last", "goal", "seed")
        lines = (
            about.lazy().join(counts, on="cell").sort("attack", "model", "data", "first", "seed")
        )
        return [_finite(line) for line in lines.collect().iter_rows(named=True)]

    def rows(self, name: str, cell: str) -> list[dict[str, Any]]:
        """The first rows of a cell, one per image."""
        store = self._open(name)
        if cell not in set(store.keys()):
            raise BadInput("there is no such cell in this store")
        _, _, table = store.read(cell)
        shown = table.select(list(_SHOWN)).slice(0, _ROWS)
        return [_finite(row) for row in shown.to_pylist()]

    def path(self, name: str) -> Path:
        """The folder of a listed store."""
        found = self._found()
        if name not in found:
            raise UnknownName("store", name, found)
        return found[name]

    def _open(self, name: str) -> Any:
        from pinprick.bench.store import Store

        return Store(self.path(name))

    def _found(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for folder in _folders(self.root):
            cells = folder / "cells"
            if (folder / "store.json").is_file() and cells.is_dir() and not cells.is_symlink():
                found[folder.relative_to(self.root).as_posix()] = folder
            if len(found) == _MOST:
                break
        return found


def _folders(root: Path) -> Iterator[Path]:
    """The folder and those below it, without hidden ones and links; nearer ones first."""
    level, seen = [root], 0
    for _ in range(_DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            seen += 1
            if seen > _FOLDERS:
                return
            yield folder
            try:
                entries = [one for one in os.scandir(folder) if one.is_dir(follow_symlinks=False)]
            except OSError:
                continue
            below += [Path(one.path) for one in entries if one.name[0] not in "._"]
        level = sorted(below)


def _finite(line: dict[str, Any]) -> dict[str, Any]:
    """Without numbers that JSON cannot hold."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in line.items()
    }
