"""How long ``pinprick bench verify`` takes, against the forward passes that it makes.

    python benchmarks/bench_verify.py [--model efficientnet_lite0=2] [--repeats 5] [--root FOLDER]

Copies cells of a model from results/leaderboard, all or as many as stand after its name, and
verifies them in this process. Each verification is followed by its own forward passes alone: the
same images, in the same batches, by the same models. A row holds the medians of both in wall-clock
and CPU time, and the ratio of each pair. On a busy machine only ratios of neighbouring runs can be
compared. The rows are in results/bench_verify/.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from write_rows import write_rows

from pinprick.bench.store import Store
from pinprick.bench.verification import Verification
from pinprick.bench.verify import verify_store
from pinprick.freed_memory import keep_freed_memory
from pinprick.model import Classifier
from pinprick.threads import limited_threads
from pinprick.types import Images, Logits

MODELS = ("pinprick:mnist_cnn", "pinprick:cifar10_resnet20=20", "efficientnet_lite0=2")
Passes = list[tuple[Classifier, Images]]


def copy_cells(source: Path, target: Path, model: str, most: int | None = None) -> int:
    """Copy cells of a model to a store of their own; the number of cells."""
    store, found = Store(source), Store(target)
    found.prepare()
    keys = [key for key, (cell, _) in store.cells().items() if cell.model == model][:most]
    for key in keys:
        found.path(key).parent.mkdir(exist_ok=True)
        shutil.copy(store.path(key), found.path(key))
    return len(keys)


@contextmanager
def recorded() -> Iterator[Passes]:
    """The forward passes that are made meanwhile."""
    passes: Passes = []
    call = Classifier.__call__

    def record(self: Classifier, images: Images) -> Logits:
        passes.append((self, images))
        return call(self, images)

    Classifier.__call__ = record  # type: ignore[method-assign]
    try:
        yield passes
    finally:
        Classifier.__call__ = call  # type: ignore[method-assign]


def repeat(passes: Passes) -> None:
    """Make forward passes and nothing else, on one thread as the published cells were."""
    with limited_threads(1), torch.no_grad():
        for model in {id(model): model for model, _ in passes}.values():
            with model.frozen():
                for its_model, images in passes:
                    if its_model is model:
                        model(images)


def spent(work: Callable[[], Any]) -> dict[str, float]:
    """Seconds of some work."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def measure(folder: Path, root: Path | None, repeats: int) -> dict[str, Any]:
    outcome: list[Verification] = []
    with recorded() as passes:  # the first run loads everything, and is not measured
        outcome.append(verify_store(folder, root=root))
    verify, bare = [], []
    for _ in range(repeats):
        verify.append(spent(lambda: outcome.append(verify_store(folder, root=root))))
        bare.append(spent(lambda: repeat(passes)))
    ratios = [
        {name: one[name] / other[name] for name in one}
        for one, other in zip(verify, bare, strict=True)
    ]
    found = outcome[-1]
    return {
        "images": found.rows,
        "verified": found.verified,
        "differences": len(found.differences),
        "forward_passes": sum(len(images) for _, images in passes),
        "verify": medians(verify),
        "bare": medians(bare),
        "ratio": medians(ratios),
        "lowest_ratio": {name: min(one[name] for one in ratios) for name in ratios[0]},
        "highest_ratio": {name: max(one[name] for one in ratios) for name in ratios[0]},
    }


def measure_model(name: str, store: Path, root: Path | None, repeats: int) -> dict[str, Any]:
    """The row of a model; its name may end with the number of cells, as in mnist_cnn=2."""
    model, _, most = name.partition("=")
    with tempfile.TemporaryDirectory() as temporary:
        cells = copy_cells(store, Path(temporary), model, int(most) if most else None)
        row = {"model": model, "cells": cells, "cores": len(os.sched_getaffinity(0))}
        return row | measure(Path(temporary), root, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("results/leaderboard"))
    parser.add_argument("--model", action="append", metavar="NAME[=CELLS]", dest="models")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--root", type=Path, help="the folder of the datasets")
    parser.add_argument("--out", type=Path, default=Path("results/bench_verify/seconds.json"))
    options = parser.parse_args()
    keep_freed_memory()  # as the command does
    rows = []
    for name in options.models or MODELS:
        rows.append(measure_model(name, options.store, options.root, options.repeats))
        print(rows[-1])
    write_rows(options.out, rows, "cpu")


if __name__ == "__main__":
    main()
