"""How long ``pinprick report`` takes, how large its file is, and how soon a browser shows it.

    python benchmarks/report.py [--images 1000 10000] [--attacks 1] [--changed 20] [--repeats 3]
        [--out results/report/seconds.json]

Makes stores of invented results on images of 32 x 32 pixels. The images are noise, which PNG cannot
compress, so that photographs give smaller files. Then runs the command in a process of its own. A
row per store: medians of wall-clock and CPU time, bytes of the file, images in its gallery, and,
where playwright and Chromium are installed, milliseconds to the first contentful paint. On a
machine that does other work as well, CPU time says more than wall-clock time.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from write_rows import write_rows

from pinprick import AttackResult, Goal
from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import Origin
from pinprick.bench.rows import to_table
from pinprick.bench.store import Store
from pinprick.saved_batches import tensors_sha256

ORIGIN = Origin(
    version="0", commit="", torch="", device="cpu", date="", seconds=1.0, peak_memory=None
)
PER_CELL, CLASSES = 100, 10


def invent(images: torch.Tensor, labels: torch.Tensor, first: int, changed: int) -> AttackResult:
    """All images fooled by so many changed pixels."""
    count = len(images)
    adv = images.clone().flatten(2)
    for row in range(count):
        at = torch.randperm(adv.shape[2])[:changed]
        adv[row, :, at] = torch.rand(3, changed)
    right = torch.nn.functional.one_hot(labels, CLASSES).float()
    passes = torch.randint(10, 1000, (count,))
    return AttackResult(
        images=images,
        adversarial=adv.view_as(images),
        goal=Goal(labels),
        clean_logits=right,
        adversarial_logits=right.roll(1, dims=1),
        rounded_logits=right.roll(1, dims=1),
        forwards=passes,
        backwards=passes,
        out_of_budget=torch.zeros(count, dtype=torch.bool),
        out_of_time=torch.zeros(count, dtype=torch.bool),
        ids=torch.arange(first, first + count),
        batch_size=torch.full((count,), PER_CELL),
        remarks=("",) * count,
        seconds=1.0,
    )


def make_store(folder: Path, images: int, attacks: int, changed: int) -> Path:
    torch.manual_seed(0)
    pixels = torch.randint(0, 256, (images, 3, 32, 32), dtype=torch.uint8)
    labels = torch.randint(0, CLASSES, (images,))
    data = folder / "noise.safetensors"
    save_file({"images": pixels, "labels": labels}, data)
    store = Store(folder / "store")
    store.prepare()
    for number in range(attacks):
        for first in range(0, images, PER_CELL):
            last = min(images, first + PER_CELL)
            some, own = pixels[first:last].float() / 255, labels[first:last]
            digest = tensors_sha256([("images", some), ("labels", own)])
            assert digest is not None
            cell = Cell(
                attack={"name": f"attack {number}"},
                revision=1,
                model="net",
                weights="0" * 64,
                data=f"tensors:{data}[split=test]",
                data_hash=digest,
                first=first,
                last=last,
            )
            result = invent(some, own, first, changed)
            store.write(cell, to_table(result, cell.key, dense=True), ORIGIN)
    return folder / "store"


def run(store: Path, out: Path) -> tuple[float, float, dict[str, Any]]:
    """Wall-clock and CPU seconds of the command, and what it says with --json."""
    command = [sys.executable, "-m", "pinprick", "report", str(store), "--out", str(out), "--json"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, json.loads(done.stdout)


def first_paint(page: Path, repeats: int) -> float | None:
    """Milliseconds; None without playwright or Chromium."""
    program = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return None
    if program is None:
        return None
    times = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for _ in range(repeats):
            tab = browser.new_page()
            tab.goto(page.as_uri())
            tab.wait_for_timeout(300)
            entries = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            times.append(tab.evaluate(entries))
            tab.close()
        browser.close()
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--attacks", type=int, default=1)
    parser.add_argument("--changed", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/report/seconds.json"))
    given = parser.parse_args()
    rows = []
    for images in given.images:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            store = make_store(folder, images, given.attacks, given.changed)
            runs = [run(store, folder / "report.html") for _ in range(given.repeats)]
            wall, cpu = (statistics.median(one[number] for one in runs) for number in (0, 1))
            paint = first_paint(folder / "report.html", given.repeats)
            row = {"results": images * given.attacks, "changed": given.changed}
            row |= {"wall_s": round(wall, 2), "cpu_s": round(cpu, 2), **runs[0][2]}
            del row["file"]
            rows.append({**row, "first_paint_ms": paint})
            print(json.dumps(rows[-1]))
    write_rows(given.out, rows, "cpu")


if __name__ == "__main__":
    main()
