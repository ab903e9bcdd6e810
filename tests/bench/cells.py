"""Cells, rows and origins that tests of the benchmark share; no model is loaded for them."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import Origin

ORIGIN = Origin(
    version="0.1.0",
    commit="",
    torch="2.8.0",
    device="cpu",
    date="2026-01-02T03:04:05+00:00",
    seconds=1.5,
    peak_memory=None,
)
CELL = Cell(
    attack={"name": "greedy", "steps": 10},
    revision=1,
    model="pinprick:mnist_cnn",
    weights="a" * 64,
    data="mnist/test[0:3]",
    data_hash="b" * 64,
    first=0,
    last=3,
    victims=(("pinprick:mnist_cnn_pgd_at", "c" * 64),),
)


def cell_with(**changes: Any) -> Cell:
    return replace(CELL, **changes)


def rows_of(cell: Cell, *, pixels: int | None = 2) -> pa.Table:
    """A few of the columns of a cell, of every kind that rows have."""
    count = len(cell)
    lists = [list(range(number)) for number in range(count)]
    return pa.table(
        {
            "cell": [cell.key] * count,
            "index": list(range(cell.first, cell.last)),
            "success": [True] * (count - 1) + [False],
            "pixels": pa.array([pixels] * (count - 1) + [None], pa.int64()),
            "seconds": [0.25 * number for number in range(count)],
            "remark": ["", "ünï"] + [""] * (count - 2) if count > 1 else [""],
            "positions": pa.array([None, *lists[1:]], pa.list_(pa.int32())),
            "values": pa.array(
                [[0.1 * number, float("nan")] for number in range(count)], pa.list_(pa.float32())
            ),
            "steps": pa.array(
                [[{"forwards": number, "pixels": 3}] for number in range(count)],
                pa.list_(pa.struct({"forwards": pa.int64(), "pixels": pa.int64()})),
            ),
        }
    )
