"""Rows of a benchmark as ``Store.rows_and_cells`` gives them, from a few numbers per image."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

_TYPES: dict[str, Any] = {
    "cell": pl.String,
    "index": pl.Int64,
    "label": pl.Int64,
    "target": pl.Int64,
    "correct": pl.Boolean,
    "skipped": pl.Boolean,
    "success": pl.Boolean,
    "pixels": pl.Int64,
    "elements": pl.Int64,
    "forwards": pl.Int64,
    "backwards": pl.Int64,
    "first_success_forwards": pl.Int64,
    "steps": pl.List(
        pl.Struct(
            {
                "forwards": pl.Int64,
                "backwards": pl.Int64,
                "elements": pl.Int64,
                "pixels": pl.Int64,
            }
        )
    ),
    "seconds": pl.Float64,
    "victims": pl.List(pl.Int64),
    "victims_clean": pl.List(pl.Int64),
    "shape": pl.List(pl.Int32),
    "error": pl.String,
    "attack": pl.String,
    "settings": pl.String,
    "revision": pl.Int64,
    "code": pl.String,
    "max_forwards": pl.Int64,
    "max_backwards": pl.Int64,
    "max_passes": pl.Int64,
    "model": pl.String,
    "weights": pl.String,
    "data": pl.String,
    "data_hash": pl.String,
    "first": pl.Int64,
    "last": pl.Int64,
    "goal": pl.String,
    "seed": pl.Int64,
    "batch_size": pl.Int64,
    "threads": pl.Int64,
    "precision": pl.String,
    "device": pl.String,
    "speed": pl.String,
    "labels_by_number": pl.Boolean,
    "victim_models": pl.List(pl.String),
    "victim_weights": pl.List(pl.String),
}


def cell(
    attack: str, needed: Sequence[float | str], *, first: int = 0, **about: Any
) -> list[dict[str, Any]]:
    """The rows of one cell: per image its pixels, 0 if skipped, inf if failed, or an error.

    ``about`` has further columns, which are lists where they differ between images.
    """
    settings = {"name": attack, **about.pop("settings", {})}
    of_cell = {
        "attack": attack,
        "settings": json.dumps(settings, sort_keys=True),
        "revision": 1,
        "code": "",
        "max_forwards": None,
        "max_backwards": None,
        "max_passes": None,
        "model": "net",
        "weights": "w" * 64,
        "data": "some/test",
        "data_hash": f"{first}",
        "first": first,
        "last": first + len(needed),
        "goal": "untargeted",
        "seed": 0,
        "batch_size": 32,
        "threads": 1,
        "precision": "float32",
        "speed": "exact",
        "device": "cpu",
        "labels_by_number": False,
        "victim_models": [],
        "victim_weights": ["v" * 64 for _ in about.get("victim_models", ())],
        **{key: about.pop(key) for key in list(about) if key in _CELL},
    }
    key = str(sorted((name, str(value)) for name, value in of_cell.items()))
    return [
        {
            "cell": key,
            "index": first + number,
            **(_error(units) if isinstance(units, str) else _row(units)),
            **{name: values[number] for name, values in about.items()},
            **of_cell,
        }
        for number, units in enumerate(needed)
    ]


def frame(*cells: Sequence[Mapping[str, Any]]) -> tuple[pl.LazyFrame, pl.DataFrame]:
    """The rows and the cells."""
    rows = pl.DataFrame([row for rows in cells for row in rows], schema=_TYPES)
    return rows.drop(_CELL).lazy(), rows.select("cell", *_CELL).unique("cell")


_CELL = list(_TYPES)[list(_TYPES).index("attack") :]


def _row(units: float) -> dict[str, Any]:
    success = math.isfinite(units)
    return {
        "label": 0,
        "target": None,
        "correct": units > 0,
        "skipped": units == 0,
        "success": success,
        "pixels": int(units) if success else None,
        "elements": 3 * int(units) if success else None,
        "forwards": 10 if units > 0 else 0,
        "backwards": 5 if units > 0 else 0,
        "first_success_forwards": 4 if success and units > 0 else None,
        "steps": [],
        "seconds": 0.5 if units > 0 else 0.0,
        "victims": [],
        "victims_clean": [],
        "shape": [3, 10, 10],
        "error": "",
    }


def _error(message: str) -> dict[str, Any]:
    return {"error": message}
