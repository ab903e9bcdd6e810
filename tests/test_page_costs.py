"""Published costs of reports and of the web page: they stay below what users are promised."""

import json
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).parent.parent / "results"
RUNS = sorted((RESULTS / "web").glob("*.json"))


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return found


def test_a_report_of_a_thousand_results_is_quick_and_small() -> None:
    (row,) = [row for row in rows(RESULTS / "report" / "seconds.json") if row["results"] == 1000]
    assert row["wall_s"] < 10
    assert row["bytes"] < 15e6
    assert row["first_paint_ms"] < 1000


def test_both_sizes_of_images_were_watched() -> None:
    assert [path.stem for path in RUNS] == ["efficientnet_lite0", "fashion_cnn"]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_the_web_page_is_light_and_watching_costs_little(path: Path) -> None:
    page, *runs = rows(path)
    assert page["bytes"] < 300_000
    assert page["reload_median_ms"] < 50
    assert len(runs) >= 3
    for run in runs:
        assert run["updates"] >= 2 * run["seconds"]
        assert run["percent_of_time"] < 3
        assert run["watching_percent"] < 3  # of the attack's own CPU time
