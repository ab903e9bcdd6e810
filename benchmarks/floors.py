"""Are sparse attacks still as good as they were on CIFAR-10? Checks the rows of plans/floors.toml.

    pinprick bench run plans/floors.toml --store STORE
    python benchmarks/floors.py STORE

Elements are counted for all, also for attacks that choose pixels. A floor is what was measured on a
CPU with 10 % of room for another machine's rounding, and two images fewer to fool; where k is
given, it is k. It moves only together with a line in the changelog. The exit status is 1 where a
floor is broken, and 2 where rows are missing. ``tests/attacks/test_floors.py`` has small ones.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

from pinprick import build
from pinprick.bench.cell import canonical
from pinprick.bench.store import Store, existing_store


class Floor(NamedTuple):
    """What is asked of an attack.

    Attributes:
        spec: The attack and its settings, as in the plan.
        fooled: How many of the images it fools, at least.
        elements: Mean of the elements changed in those, at most.
    """

    spec: dict[str, Any]
    fooled: int
    elements: float


FLOORS = (
    Floor({"name": "greedy"}, 30, 73.1),
    Floor({"name": "sparsefool"}, 29, 23.6),
    Floor({"name": "sparsefool", "lam": 1.0}, 27, 17.3),
    Floor({"name": "greedyfool"}, 30, 21.7),
    Floor({"name": "homotopy"}, 30, 11.9),
    Floor({"name": "sigma_zero", "steps": 200}, 30, 10.7),
    Floor({"name": "fmn", "steps": 200}, 30, 8.4),
    Floor({"name": "cw_l0", "preset": "quick", "unit": "elements"}, 30, 7.2),
    Floor({"name": "strattack", "preset": "quick"}, 30, 11.4),
    Floor({"name": "sapf", "preset": "quick", "k": 30}, 30, 30),
    Floor({"name": "wifgsm"}, 30, 10.4),
    Floor({"name": "pinprick", "effort": "fast"}, 30, 7.4),
    Floor({"name": "pgd0", "k": "smallest", "steps": 20, "restarts": 1}, 30, 28.7),
    Floor({"name": "sparse_pgd", "k": "smallest", "steps": 30}, 30, 12.9),
    Floor({"name": "corner_search", "preset": "quick"}, 30, 16.6),
    Floor({"name": "jsma", "preset": "quick"}, 30, 24.6),
)


def check(floor: Floor, store: Store) -> str:
    """Print what was measured and give the verdict: "holds", "BROKEN" or "no rows"."""
    import polars as pl

    rows, cells = store.rows_and_cells(whole=True)
    mine = cells.filter(pl.col("settings") == canonical(build(floor.spec).describe()))
    found = rows.filter(pl.col("cell").is_in(mine["cell"].to_list()))
    fooled = found.filter(pl.col("correct") & pl.col("success"))
    elements = fooled.select("elements").collect()["elements"]
    mean = elements.mean() if len(elements) else float("nan")
    holds = len(elements) >= floor.fooled and mean <= floor.elements
    verdict = "no rows" if mine.is_empty() else "holds" if holds else "BROKEN"
    settings = ", ".join(f"{key} {value}" for key, value in floor.spec.items() if key != "name")
    print(
        f"{floor.spec['name']:14} fooled {len(elements)} (at least {floor.fooled})  "
        f"{mean:6.2f} elements (at most {floor.elements:g})  {verdict:8} {settings}"
    )
    return verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("store", type=Path)
    store = existing_store(parser.parse_args().store)
    verdicts = {check(floor, store) for floor in FLOORS}
    return 1 if "BROKEN" in verdicts else 2 if "no rows" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
