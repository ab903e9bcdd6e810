"""What the runner of the benchmark costs, and how much faster two workers are than one.

    python benchmarks/bench_engines.py compute|sleep [--cells 100] [--seconds 0.5] [--engines here]

Cells do a fixed number of steps on one core, or sleep. A line of JSON per run: the time of the run
and the time inside the work. ``overhead`` is what the engine ``here`` adds to the work. ``speedup``
is the time with one worker over that with two. The start of worker processes counts. The Ray
cluster is there before, and its worker processes have started. The rows are in
results/bench_engines/. Two computing workers need two idle cores.
"""

import argparse
import hashlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import Origin
from pinprick.bench.engines.run_cells import ENGINES, Engine, run_cells
from pinprick.bench.store import Store
from pinprick.files import write_text

BLOCK = bytes(1 << 16)


def spend(kind: str, amount: float) -> None:
    """Hash so many blocks, or sleep so many seconds."""
    if kind == "sleep":
        time.sleep(amount)
        return
    digest = hashlib.sha256()
    for _ in range(int(amount)):
        digest.update(BLOCK)


def work(cell: Cell) -> tuple[pa.Table, Origin]:
    start = time.perf_counter()
    spend(cell.attack["kind"], cell.attack["amount"])
    table = pa.table({"cell": [cell.key], "index": [cell.first], "remark": [""], "error": [""]})
    seconds = time.perf_counter() - start
    return table, Origin(
        version="", commit="", torch="", device="", date="", seconds=seconds, peak_memory=None
    )


def blocks_in(seconds: float) -> float:
    """How many blocks one core hashes in this time."""
    start = time.perf_counter()
    spend("compute", 4000)
    return round(4000 * seconds / (time.perf_counter() - start))


def cells_of(kind: str, amount: float, count: int) -> list[Cell]:
    attack = {"name": "none", "kind": kind, "amount": amount}
    return [
        Cell(
            attack={**attack, "number": number},
            revision=1,
            model="none",
            weights="",
            data="none[0:1]",
            data_hash="",
            first=0,
            last=1,
        )
        for number in range(count)
    ]


def measure(cells: Sequence[Cell], engine: Engine, workers: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        start = time.perf_counter()
        run_cells(cells, store, work, engine=engine, workers=workers)
        seconds = time.perf_counter() - start
        inside = sum(store.read(cell.key)[1].seconds for cell in cells)
    return {"engine": engine, "workers": workers, "seconds": seconds, "inside_work": inside}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("compute", "sleep"))
    parser.add_argument("--cells", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--out", type=Path, help="by default results/bench_engines/KIND.jsonl")
    options = parser.parse_args()

    from write_rows import surroundings  # here, as it imports torch, which workers do without

    amount = blocks_in(options.seconds) if options.kind == "compute" else options.seconds
    cells = cells_of(options.kind, amount, options.cells)
    about = {"kind": options.kind, "cells": options.cells, "seconds_per_cell": options.seconds}
    machine = {"cores": len(os.sched_getaffinity(0)), "python": platform.python_version()}
    where = machine | surroundings("cpu")
    found = []
    for engine in options.engines:
        if engine == "here":
            here = measure(cells, engine, 1)
            here["overhead"] = here["seconds"] / here["inside_work"] - 1
            found.append(here)
            continue
        if engine == "ray":
            import ray

            ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
            measure(cells_of("sleep", options.seconds, 2), "ray", 2)
        one, two = (measure(cells, engine, workers) for workers in (1, 2))
        two["speedup"] = one["seconds"] / two["seconds"]
        found += [one, two]
    lines = [json.dumps({**about, **row, "run": where}) for row in found]
    print("\n".join(lines))
    out = options.out or Path("results/bench_engines", f"{options.kind}.jsonl")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
