"""Rows of results/interpretation/: one per network, goal, attack, grouping and sampling."""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pinprick.attacks import ATTACKS

ROWS = Path(__file__).parents[3] / "results" / "interpretation"
NETWORKS = (
    "ResNet-18",
    "ResNet-18, PGD-AT",
    "ResNet-20",
    "ResNet-20, PGD-AT",
    "EfficientNet-Lite0",
    "ResNet-50, ImageNet",
    "Fashion-MNIST CNN",
)
GOALS = ("untargeted", "least likely")
DENSE = "ifgsm"

Row = dict[str, Any]


@cache
def all_rows() -> list[Row]:
    """All rows in which any image was fooled, network by network."""
    found = []
    for path in sorted(ROWS.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        names = {"network": document["network"], "goal": document["goal"]}
        found += [row | names for row in document["rows"] if row["mean_pixels"] is not None]
    attacks = list(ATTACKS)

    def order(row: Row) -> tuple[int, int, int]:
        goal = GOALS.index(row["goal"])
        return NETWORKS.index(row["network"]), goal, -attacks.index(name_of(row))

    return sorted(found, key=order)


def name_of(row: Row) -> str:
    return str(row["attack"]).split(",")[0]


def title_of(row: Row) -> str:
    fast = ", fast" if "effort=fast" in row["attack"] else ""
    return ATTACKS[name_of(row)].card.title + fast


def connected() -> list[Row]:
    """Sparse attacks, with connected pixels as groups."""
    return [
        row
        for row in all_rows()
        if row["settings"]["grouping"] == "connected" and name_of(row) != DENSE
    ]


def same_sampling() -> list[Row]:
    """Single pixels as groups, every effect from the same number of pairs of orders."""
    return [row for row in all_rows() if row["settings"]["grouping"] == "pixels" and pairs_of(row)]


def pairs_of(row: Row) -> int:
    """The pairs of orders that every effect of a row comes from; 0 where that depends on groups."""
    settings = row["settings"]
    same = settings["exact"] == 0 and settings["least_pairs"] == settings["max_pairs"]
    return int(settings["max_pairs"]) if same else 0


def cases(rows: Sequence[Row]) -> Iterator[tuple[str, str, list[Row]]]:
    """The rows of each network and goal."""
    for network in NETWORKS:
        for goal in GOALS:
            mine = [row for row in rows if (row["network"], row["goal"]) == (network, goal)]
            if mine:
                yield network, goal, mine


def kind(row: Row, name: str) -> float:
    """The share of groups with a label."""
    shares = {one["name"]: one["share"]["value"] for one in row["totals"]["kinds"]}
    return float(shares[name])


def on_one_map(rows: Sequence[Row]) -> tuple[int, int]:
    """Purely obscuring or leading groups on exactly one map: as the paper says, and against it."""
    counts = [row["totals"]["table"]["counts"] for row in rows]
    said = sum(one[0][0] + one[1][1] for one in counts)
    against = sum(one[0][1] + one[1][0] for one in counts)
    return said, against


def null_share(rows: Sequence[Row]) -> float | None:
    """The share that would lie as the paper says by chance; None for rows that lack it."""
    known = [row["places"] for row in rows if row.get("places")]
    said = sum(one["null_as_said"] for one in known)
    against = sum(one["null_against"] for one in known)
    return said / (said + against) if said + against else None


def flip(row: Row, family: str, what: str) -> Row | None:
    """A flip rate with its interval and number of images; None if no image has such groups."""
    flips = {one["name"]: one for one in row["totals"]["flips"]}
    found: Row = flips[family][what]
    return found if found["value"] is not None else None
