"""What reports and the web page cost, for their pages: from results/report and results/web."""

import json
from pathlib import Path
from statistics import median
from typing import Any

from pinprick.report.docs_measured import markdown_table

RESULTS = Path(__file__).parents[2] / "results"
MODELS = {"fashion_cnn": "pinprick:fashion_cnn", "efficientnet_lite0": "efficientnet_lite0"}


def _rows(path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((RESULTS / path).read_text(encoding="utf-8"))["rows"]
    return rows


def report() -> str:
    """Time, size and first paint by the number of results."""
    rows = [
        (
            f"{row['results']:,}",
            f"{row['images']:,}",
            f"{row['cpu_s']:.1f}",
            f"{row['wall_s']:.1f}",
            f"{row['bytes'] / 1e6:.1f}",
            f"{row['first_paint_ms'] / 1000:.2f}",
        )
        for row in _rows("report/seconds.json")
    ]
    columns = ("results", "images shown", "CPU seconds", "seconds", "MB", "seconds to first paint")
    return markdown_table(columns, rows)


def page() -> str:
    """Weight and first byte of the page, the larger of both measurements."""
    pages = [_rows(f"web/{name}.json")[0] for name in MODELS]
    names = ("bytes", "first_load_ms", "reload_median_ms", "reload_longest_ms")
    weight, first, middle, longest = (max(row[name] for row in pages) for name in names)
    return (
        f"The page weighs {weight / 1000:.0f} kB without pictures. The first load after the start "
        f"waited {first:.0f} ms for its first byte.\nReloads waited {middle:.1f} ms in the median "
        f"and {longest:.1f} ms at most (n = {pages[0]['reloads']})."
    )


def watching() -> str:
    """Updates per second and what watching takes, by model: medians over runs."""
    lines = []
    for name, model in MODELS.items():
        runs = _rows(f"web/{name}.json")[1:]
        middle = {key: median(run[key] for run in runs) for key in ("seconds", "percent_of_time")}
        rate = median(run["updates"] / run["seconds"] for run in runs)
        longest = max(run["longest_gap_s"] for run in runs)
        beside = median(run["watching_percent"] + run["server_percent"] for run in runs)
        lines.append(
            (
                f"`{model}`",
                f"{runs[0]['attack']}, {runs[0]['effort']}",
                str(len(runs)),
                f"{middle['seconds']:.1f}",
                f"{rate:.1f}",
                f"{longest:.2f}",
                f"{middle['percent_of_time']:.1f} %",
                f"{median(run['watching_percent'] for run in runs):.1f} %",
                f"{beside:.1f} %",
            )
        )
    columns = ("model", "attack", "runs", "seconds", "updates per second", "longest gap")
    shares = ("of the time", "of the attack's CPU time, its thread", "and the server")
    return markdown_table((*columns, *shares), lines)


PAGES = {
    "docs/how_to/read_a_report.md": {"cost of a report": report},
    "docs/how_to/web.md": {"cost of the page": page, "cost of watching": watching},
}
