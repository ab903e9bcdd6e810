"""Puts what ``interpretation.py`` wrote into the rows of results/interpretation/.

    python benchmarks/interpretation_rows.py --network ResNet-20 OUT/interpretation.json

Numbers of single images are left out. The rows go into the file of that network and goal. A row of
the same attack, grouping and sampling is replaced. ``./scripts/docs measured`` puts them on the
page.
"""

import argparse
import json
import math
import re
from pathlib import Path
from typing import Any

ROWS = Path(__file__).parent.parent / "results/interpretation"
KEPT = (
    *("attack", "fooled", "attack_pixels", "mean_pixels", "median_pixels", "mean_elements"),
    *("revision", "attacked", "places", "describe", "settings", "map", "layer"),
    *("seconds", "explain_seconds"),
)
SAMPLING = ("grouping", "exact", "least_pairs", "max_pairs")

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--network", required=True, help="its name in the tables of the page")
    options = parser.parse_args()
    for path in options.files:
        add(json.loads(path.read_text(encoding="utf-8")), options.network)


def add(document: dict[str, Any], network: str) -> None:
    """Put the rows of one run into the file of its network and goal."""
    goal = document["goal"].replace("-", " ")
    path = ROWS / f"{re.sub('[^a-z0-9]+', '_', network.lower())}_{goal.replace(' ', '_')}.json"
    known = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    about = {
        key: document[key] for key in ("images", "data", "device", "torch", "pinprick", "commit")
    }
    new = [shortened(row) | {"run": about} for row in document["rows"]]
    rows = {key_of(row): row for row in known + new}
    lines = ",\n".join(json.dumps(rounded(row), ensure_ascii=False) for row in rows.values())
    head = json.dumps({"network": network, "goal": goal}, ensure_ascii=False)[:-1]
    path.write_text(f'{head}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def key_of(row: Row) -> tuple[object, ...]:
    return row["attack"], *(row["settings"][name] for name in SAMPLING)


def shortened(row: Row) -> Row:
    errors = [one["error"] for one in row["images"] if one["error"] is not None]
    return {key: row[key] for key in KEPT if key in row} | {
        "largest_error": max(errors, default=None),
        "totals": row["totals"],
    }


def rounded(value: Any) -> Any:
    """Four digits are enough; what is no number is none."""
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
