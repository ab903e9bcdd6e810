"""Are ours as good as theirs? Reads the rows of a plan whose products have ours first.

    python benchmarks/parity/compare.py plans/parity.toml --store STORE [--out rows.json]

A line per pair, ours before theirs: images that the model gets right, fooled images, mean over the
images that both fooled, images on which each needs less, passes and milliseconds per image. A side
is worse where it fools fewer images by McNemar's test. A minimal attack is also worse where it
needs over 5 % more units and the paired difference is beyond 3 standard errors; a budget attack may
use its budget. Where a minimal attack meets a budget attack, it fools with at most that budget.
Where ours is worse, the exit status is 1. Images that one side lacks do not count.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from pinprick.attacks.card import Attack
from pinprick.bench.cell import canonical
from pinprick.bench.plan_file import read_plan
from pinprick.bench.store import Store, existing_store
from pinprick.metrics.paired_tests import mcnemar

COLUMNS = ["success", "correct", "pixels", "elements", "l1", "l2", "linf"]
COLUMNS += ["forwards", "backwards", "seconds", "error"]


def rows_of(
    rows: Any, cells: Any, attack: Attack, model: str, data: str, goal: str, seed: int
) -> Any:
    """The rows of one attack in the order of the images; None where there are none."""
    import polars as pl

    mine = cells.filter(
        (pl.col("settings") == canonical(attack.describe()))
        & (pl.col("model") == model)
        & (pl.col("data") == data)
        & (pl.col("goal") == goal)
        & (pl.col("seed") == seed)
    )
    found = rows.filter(pl.col("cell").is_in(mine["cell"].to_list()))
    table = found.sort("index")
    return table if len(table) else None


def measure_of(attack: Attack) -> str:
    """The column that the attack keeps small."""
    facts = attack.facts()
    return facts.norm if facts.unit is None else facts.unit


def compare(
    ours: Any, theirs: Any, measure: str, *, minimal: bool = True, most: float = math.inf
) -> dict[str, Any]:
    """One row: what both needed on the same images.

    Args:
        ours: Rows of our attack.
        theirs: Rows of theirs.
        measure: The column that is compared.
        minimal: Whether a smaller change is better.
        most: The largest change that counts as fooled.
    """
    ours, theirs = (
        one.filter(one["index"].is_in(other["index"].to_list()))
        for one, other in ((ours, theirs), (theirs, ours))
    )
    fine = (ours["error"] == "") & (theirs["error"] == "") & ours["correct"]
    ours, theirs = ours.filter(fine), theirs.filter(fine)
    fooled = [(one["success"] & (one[measure] <= most)).to_numpy() for one in (ours, theirs)]
    both = fooled[0] & fooled[1]
    sizes = [one[measure].to_numpy()[both].astype(float) for one in (ours, theirs)]
    difference = sizes[0] - sizes[1]
    count = len(difference)
    error = float(difference.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    means = [float(size.mean()) if count else math.nan for size in sizes]
    p_value = mcnemar(*fooled)

    def worse(one: int, other: int, excess: float) -> bool:
        fewer = fooled[one].sum() < fooled[other].sum() and p_value < 0.05
        more = count > 1 and means[one] > 1.05 * means[other] and excess > 3 * error
        return bool(fewer or (minimal and more))

    row: dict[str, Any] = {
        "images": len(ours),
        "measure": measure,
        "only_ours": int((fooled[0] & ~fooled[1]).sum()),
        "only_theirs": int((fooled[1] & ~fooled[0]).sum()),
        "p_fooled": p_value,
        "ours_smaller": int((difference < 0).sum()),
        "theirs_smaller": int((difference > 0).sum()),
        "standard_error": error,
        "worse": worse(0, 1, difference.mean() if count else 0.0),
        "better": worse(1, 0, -difference.mean() if count else 0.0),
    }
    for who, one, hits, mean in zip(("ours", "theirs"), (ours, theirs), fooled, means, strict=True):
        row[who] = {
            "fooled": int(hits.sum()),
            "mean": mean,
            **{
                name: float(one[name].to_numpy().mean())
                for name in ("forwards", "backwards", "seconds")
            },
        }
    return row


def pairs(plan: Path, store: Store) -> Iterator[dict[str, Any]]:
    """One row per attack of theirs that has rows, beside ours of the same product."""
    every, cells = store.rows_and_cells(whole=True)
    rows = every.select("cell", "index", *COLUMNS).collect()
    for one in read_plan(plan).products:
        first, *others = one.attacks
        for other, model, data, goal, seed in product(
            others, one.models, one.data, one.goals, one.seeds
        ):
            found = [rows_of(rows, cells, each, model, data, goal, seed) for each in (first, other)]
            about = {"ours": first.describe(), "theirs": other.describe()}
            titles = {"ours": first.facts().title, "theirs": other.facts().title}
            if any(table is None for table in found):
                print(f"no rows: {about['theirs']['name']} on {data}", file=sys.stderr)
                continue
            minimal = first.facts().kind == "minimal"
            budget = (
                about["theirs"]["k"] if minimal and other.facts().kind == "budget" else math.inf
            )
            row = compare(*found, measure_of(first), minimal=minimal, most=budget)
            yield {
                "titles": titles,
                "settings": about,
                "model": model,
                "data": data,
                "goal": goal,
                **row,
            }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("plan", type=Path)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="where to write the rows as JSON")
    options = parser.parse_args()
    rows = list(pairs(options.plan, existing_store(options.store)))
    verdicts = {(True, False): "WORSE", (False, True): "better", (True, True): "undecided"}
    print("| attack | images | fooled | mean | smaller | passes | ms per image | |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        ours, theirs = row["ours"], row["theirs"]
        passes = [f"{one['forwards']:.0f} + {one['backwards']:.0f}" for one in (ours, theirs)]
        times = [f"{1000 * one['seconds']:.1f}" for one in (ours, theirs)]
        print(
            f"| {row['settings']['theirs']['name'].rpartition(':')[2]} | {row['images']} "
            f"| {ours['fooled']}, {theirs['fooled']} "
            f"| {ours['mean']:.2f}, {theirs['mean']:.2f} {row['measure']} "
            f"| {row['ours_smaller']}, {row['theirs_smaller']} "
            f"| {', '.join(passes)} | {', '.join(times)} "
            f"| {verdicts.get((row['worse'], row['better']), '')} |"
        )
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    return int(any(row["worse"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
