"""How long ``pinprick bench show`` takes on a store of a million rows.

    python benchmarks/bench_show.py [--rows 1000000] [--cells 100 5000] [--repeats 3]

Makes stores of invented rows: ten attacks on ten models, so many images each, with a perturbation
of 20 elements and a trace per image. Then runs the command in a process of its own: once without an
index, and then again. A line of JSON per store: the seconds of the first run, the medians of the
others in wall-clock and CPU time, and the same for Python's start with the imports of the command.
On a busy machine the CPU time is nearer to what an idle one takes. The rows are in
results/bench_show/.
"""

import argparse
import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from write_rows import surroundings

from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import Origin
from pinprick.bench.row_schema import ROWS
from pinprick.bench.store import Store
from pinprick.bench.store_index import NAME
from pinprick.files import write_text

SIDES = 10  # attacks, and models
CHANGED = 20  # elements of a perturbation
SHAPE = (3, 32, 32)
ORIGIN = Origin(
    version="0", commit="", torch="", device="cpu", date="", seconds=1.0, peak_memory=None
)


def lists(values: pa.Array, length: int, rows: int) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1) * length, pa.int32()), values)


def invent(cell: Cell, rng: np.random.Generator) -> pa.Table:
    """Rows of one cell: one image in ten is misclassified, nine attacks in ten succeed."""
    rows = len(cell)
    correct = rng.random(rows) < 0.9
    success = ~correct | (rng.random(rows) < 0.9)
    pixels = np.where(correct, rng.integers(1, 100, rows), 0)
    forwards = np.where(correct, rng.integers(10, 1000, rows), 0)
    norm = pixels * rng.random(rows)
    step = {
        "forwards": np.repeat(forwards, 2),
        "backwards": np.repeat(forwards, 2),
        "elements": np.stack([pixels * 3, pixels * 2], 1).ravel(),
        "pixels": np.stack([pixels + 1, pixels], 1).ravel(),
    }
    steps = pa.StructArray.from_arrays([pa.array(one) for one in step.values()], list(step))
    unknown = ~success
    columns = {
        "cell": [cell.key] * rows,
        "index": np.arange(cell.first, cell.last),
        "label": rng.integers(0, 10, rows),
        "target": pa.nulls(rows, pa.int64()),
        "clean_class": rng.integers(0, 10, rows),
        "adversarial_class": rng.integers(0, 10, rows),
        "correct": correct,
        "skipped": ~correct,
        "success": success,
        "success_8bit": success,
        "pixels": pa.array(pixels, mask=unknown),
        "elements": pa.array(pixels * 2, mask=unknown),
        "l1": pa.array(norm, mask=unknown),
        "l2": pa.array(np.sqrt(norm), mask=unknown),
        "linf": pa.array(norm / 100, mask=unknown),
        "clean_confidence": rng.random(rows),
        "adversarial_confidence": rng.random(rows),
        "margin": rng.random(rows),
        "noise": np.full(rows, 1e-6),
        "forwards": forwards,
        "backwards": forwards,
        "first_success_forwards": pa.array(forwards // 2, mask=unknown),
        "first_success_backwards": pa.array(forwards // 2, mask=unknown),
        "steps": lists(steps, 2, rows),
        "seconds": np.repeat(rng.random(-(-rows // cell.batch_size)), cell.batch_size)[:rows],
        "victims": lists(pa.array([], pa.int64()), 0, rows),
        "victims_clean": lists(pa.array([], pa.int64()), 0, rows),
        "remark": [""] * rows,
        "error": [""] * rows,
        "positions": lists(
            pa.array(rng.integers(0, np.prod(SHAPE), rows * CHANGED), pa.int32()), CHANGED, rows
        ),
        "values": lists(pa.array(rng.random(rows * CHANGED), pa.float32()), CHANGED, rows),
        "shape": lists(pa.array(SHAPE * rows, pa.int32()), len(SHAPE), rows),
    }
    return pa.table(columns, schema=ROWS)


def fill(store: Store, rows: int, count: int) -> None:
    """So many rows in so many cells."""
    store.prepare()
    rng = np.random.default_rng(0)
    images = rows // SIDES**2
    size = -(-rows // count)
    for attack in range(SIDES):
        for model in range(SIDES):
            for first in range(0, images, size):
                cell = Cell(
                    attack={"name": f"attack_{attack}", "steps": 100, "step_size": 0.1},
                    revision=1,
                    model=f"model_{model}",
                    weights=hashlib.sha256(f"{model}".encode()).hexdigest(),
                    data=f"data/test[0:{images}]",
                    data_hash=hashlib.sha256(f"{first}".encode()).hexdigest(),
                    first=first,
                    last=min(first + size, images),
                )
                store.write(cell, invent(cell, rng), ORIGIN)


class Spent(NamedTuple):
    """Seconds of a process."""

    wall: float
    cpu: float


def run_python(*arguments: str) -> Spent:
    before, start = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user - before.children_user
    return Spent(wall, cpu + after.children_system - before.children_system)


def median(runs: Sequence[Spent]) -> dict[str, float]:
    return {name: statistics.median(getattr(run, name) for run in runs) for name in Spent._fields}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--cells", type=int, nargs="+", default=[100, 5000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="a folder for the stores, to use them again")
    parser.add_argument("--out", type=Path, default=Path("results/bench_show/seconds.jsonl"))
    options = parser.parse_args()
    machine = {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version()}
    where = machine | surroundings("cpu")
    lines = []
    with tempfile.TemporaryDirectory() as temporary:
        for cells in options.cells:
            folder = Path(options.keep or temporary, f"{options.rows}_rows_{cells}_cells")
            if not folder.exists():
                fill(Store(folder), options.rows, cells)
            show = ["-m", "pinprick", "bench", "show", str(folder)]
            imports = "import polars, pinprick.bench.store, pinprick.report.leaderboard"
            (folder / NAME).unlink(missing_ok=True)
            first, *further = [run_python(*show) for _ in range(options.repeats + 1)]
            row = {
                "rows": options.rows,
                "cells": len(Store(folder).keys()),
                "first": first._asdict(),
                "further": median(further),
                "imports": median([run_python("-c", imports) for _ in range(options.repeats)]),
                "run": where,
            }
            lines.append(json.dumps(row))
            print(lines[-1], flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_text(options.out, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
