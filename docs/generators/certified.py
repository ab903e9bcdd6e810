"""The section on certified images of docs/results/optimum.md, from results/certified/."""

import json
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from pinprick.report.docs_measured import markdown_table

ROWS = Path(__file__).parents[2] / "results" / "certified"

Row = dict[str, Any]


@cache
def runs() -> dict[str, list[Row]]:
    """The rows of each file, by its name."""
    return {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted(ROWS.glob("*.jsonl"))
    }


def certified() -> str:
    """Per network and number of pixels, how many images are decided."""
    table = []
    for rows in runs().values():
        first = rows[0]
        for t in range(1, first["t"] + 1):
            proved = sum(row["certified"] is None or row["certified"] >= t for row in rows)
            fooled = sum(
                row["fewest_known"] is not None and row["fewest_known"] <= t for row in rows
            )
            table.append(
                (
                    f"`{first['model']}`",
                    str(t),
                    str(len(rows)),
                    str(proved),
                    str(fooled),
                    str(len(rows) - proved - fooled),
                )
            )
    head = ("network", "pixels", "images", "certified", "refuted", "undecided")
    return markdown_table(head, table)


def cost() -> str:
    """Sub-problems and seconds per image, and where it was run."""
    lines = []
    for rows in runs().values():
        first = rows[0]
        nodes = [row["nodes"] for row in rows]
        seconds = sum(row["seconds"] for row in rows)
        lines.append(
            f"- `{first['model']}`, at most {first['t']} changed, `{first['data']}`: {len(rows)} "
            f"images in {seconds:.0f} s, {median(nodes):.0f} sub-problems per image in the median, "
            f"at most {max(nodes)} ({first['device']}, commit {first['commit'][:7]})."
        )
    return "\n".join(lines)


PAGES = {"docs/results/optimum.md": {"certified": certified, "cost of certificates": cost}}
