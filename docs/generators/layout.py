"""How changes are laid out, for docs/results/interpretation.md, from results/layout/."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from pinprick.report.docs_measured import markdown_table

ROWS = Path(__file__).parents[2] / "results" / "layout" / "cifar10_resnet20.json"

Row = dict[str, Any]


@cache
def all_rows() -> list[Row]:
    """One row per attack, from the fewest clusters on."""
    rows: list[Row] = json.loads(ROWS.read_text(encoding="utf-8"))["rows"]
    return sorted(rows, key=lambda row: row["clusters"])


def layouts() -> str:
    columns = ("attack", "fooled", "pixels", "clusters", "windows", "saliency overlap")
    return markdown_table(
        columns,
        [
            (
                f"`{row['attack']}`",
                f"{row['n']} of {row['correct']}",
                f"{row['pixels']:.1f}",
                f"{row['clusters']:.1f}",
                f"{row['windows']:.0f}",
                f"{row['saliency_overlap']:.2f}",
            )
            for row in all_rows()
        ],
    )


def short() -> str:
    """GSE beside Pinprick, in two sentences."""
    found = {row["attack"]: row for row in all_rows()}
    gse, ours = found["gse"], found["pinprick effort=balanced"]
    return (
        f"In the mean, GSE changes {gse['pixels']:.0f} pixels in {gse['clusters']:.1f} clusters. "
        f"Pinprick changes\n{ours['pixels']:.1f} pixels in {ours['clusters']:.1f} clusters. "
        f"Changes of GSE are in {gse['windows']:.0f} windows, those of Pinprick in "
        f"{ours['windows']:.0f}."
    )


PAGES = {
    "docs/results/interpretation.md": {
        "layouts in short": short,
        "layouts": layouts,
    }
}
