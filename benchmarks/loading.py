"""How long a shipped model takes from its name to its first prediction, on a CPU.

    python benchmarks/loading.py

Each model in processes of its own, some of them one after another: seconds to import torch and
``load_model``, which is not counted, then those of ``load_model`` and those of the first prediction
on one picture. The mark is for the last two together.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from write_rows import write_rows

from pinprick.zoo import shipped

MARK = 2.0  # seconds

CHILD = """
import json, sys, time

begin = time.perf_counter()
import torch

from pinprick import load_model

imported = time.perf_counter()
model = load_model(sys.argv[1])
loaded = time.perf_counter()
with torch.no_grad():
    model(torch.zeros(1, int(sys.argv[2]), *model.size)).argmax(dim=1).item()
answered = time.perf_counter()
print(json.dumps([imported - begin, loaded - imported, answered - loaded]))
"""


def measure(name: str) -> list[float]:
    """Seconds of importing, loading and answering in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, f"pinprick:{name}", str(shipped.card(name).channels)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds: list[float] = json.loads(done.stdout)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=5, help="processes for each model")
    parser.add_argument("--out", type=Path, default=Path("results/loading/cpu.json"))
    options = parser.parse_args()
    slowest, rows = 0.0, []
    for name in shipped.names():
        turns = [measure(name) for _ in range(options.turns)]
        imports, loads, answers = (statistics.median(part) for part in zip(*turns, strict=True))
        most = max(load + answer for _, load, answer in turns)
        slowest = max(slowest, most)
        rows.append(
            {
                "model": f"pinprick:{name}",
                "images": 1,
                "turns": options.turns,
                "import_seconds": imports,
                "load_seconds": loads,
                "first_prediction_seconds": answers,
                "slowest_seconds": most,
            }
        )
        print(
            f"pinprick:{name}: import {imports:.2f} s, load {loads:.3f} s, "
            f"first prediction {answers:.3f} s (medians of {options.turns}); "
            f"the slowest, without import, {most:.3f} s",
            flush=True,
        )
    kept = "kept" if slowest < MARK else "missed"
    print(f"the slowest of all took {slowest:.3f} s; the mark of {MARK:g} s is {kept}")
    write_rows(options.out, rows, "cpu")


if __name__ == "__main__":
    main()
