"""Published floors: no attack is below one, and every smoothed radius follows from its votes."""

import json
from pathlib import Path
from typing import Any

import pytest

from pinprick.bounds.smoothed import radius_of, smoothed_limit

ROWS = Path(__file__).parents[2] / "results" / "floors"
PIXELS = 28 * 28


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("path", sorted(ROWS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_no_attack_is_below_a_floor(path: Path) -> None:
    rows = read(path)
    assert len(rows) == rows[0]["n"]
    for row in rows:
        if row["fewest_known"] is not None:
            assert row["certified"] < row["fewest_known"], row["image"]
        if row["attack_needs"] is not None:
            assert row["fewest_known"] <= row["attack_needs"]


@pytest.mark.parametrize("name", ["mnist_cnn_ablation", "fashion_cnn_ablation"])
def test_smoothed_radii_follow_from_the_votes(name: str) -> None:
    for row in read(ROWS / f"{name}.jsonl"):
        limit = smoothed_limit(row["hits"], row["draws"], row["alpha"], PIXELS)
        radius = radius_of(limit, PIXELS, row["kept"])
        assert row["smoothed"] == (radius if row["top"] == row["label"] else -1), row["image"]
        assert (row["smoothed_outcome"] == "abstains") == (radius < 0)
