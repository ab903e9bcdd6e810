"""Rows of results/interpretation/: one per network, goal, attack, grouping and sampling."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

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
LEAST_IMAGES = 10  # of a run; the shares of fewer images say little

Row = dict[str, Any]
Case = tuple[str, str]  # a network and a goal


@cache
def all_rows() -> list[Row]:
    """All rows with at least ``LEAST_IMAGES`` explained images, network by network."""
    found = []
    for path in sorted(ROWS.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        names = {"network": document["network"], "goal": document["goal"]}
        rows = [row for row in document["rows"] if row["totals"]["explained"] >= LEAST_IMAGES]
        found += [row | names for row in rows]
    attacks = list(ATTACKS)

    def order(row: Row) -> tuple[int, int, int]:
        goal = GOALS.index(row["goal"])
        return NETWORKS.index(row["network"]), goal, -attacks.index(name_of(row))

    return sorted(found, key=order)


def name_of(row: Row) -> str:
    return str(row["attack"]).split(",")[0]


def title_of(row: Row) -> str:
    """The attack's title, with its options where its network and goal have the attack twice."""
    title, mine = _short_title(row), case_of(row)
    same = [one for one in all_rows() if case_of(one) == mine and _short_title(one) == title]
    options = row["attack"].partition(",")[2]
    twice = len({one["attack"] for one in same}) > 1
    return f"{title} (`{options}`)" if twice and options else title


def _short_title(row: Row) -> str:
    fast = ", fast" if "effort=fast" in row["attack"] else ""
    return ATTACKS[name_of(row)].card.title + fast


def is_dense(row: Row) -> bool:
    return name_of(row) == DENSE


def case_of(row: Row) -> Case:
    return row["network"], row["goal"]


def connected() -> list[Row]:
    """Sparse attacks, with connected pixels as groups."""
    return [
        row
        for row in all_rows()
        if row["settings"]["grouping"] == "connected" and not is_dense(row)
    ]


def same_sampling() -> list[Row]:
    """Single pixels as groups, every effect from the same number of pairs of orders."""
    return [row for row in all_rows() if row["settings"]["grouping"] == "pixels" and pairs_of(row)]


def pairs_of(row: Row) -> int:
    """The pairs of orders that every effect of a row comes from; 0 where that depends on groups."""
    settings = row["settings"]
    same = settings["exact"] == 0 and settings["least_pairs"] == settings["max_pairs"]
    return int(settings["max_pairs"]) if same else 0


def by_case(rows: Sequence[Row]) -> dict[Case, list[Row]]:
    """The rows of each network and goal that has some."""
    cases = [(network, goal) for network in NETWORKS for goal in GOALS]
    found = {case: [row for row in rows if case_of(row) == case] for case in cases}
    return {case: mine for case, mine in found.items() if mine}


def mean_over_cases(rows: Sequence[Row], count: Callable[[list[Row]], tuple[int, int]]) -> float:
    """The mean of a share over networks and goals, however many attacks each has.

    Args:
        rows: The rows of all.
        count: For the rows of one network and goal, how many there are, and out of how many.
    """
    shares = [part / n for part, n in map(count, by_case(rows).values()) if n]
    return sum(shares) / len(shares)


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


def pooled_flip(rows: Sequence[Row], family: str, what: str) -> tuple[int, int]:
    """How many images flip, and out of how many; an image counts once per attack."""
    flips = [one for row in rows for one in row["totals"]["flips"] if one["name"] == family]
    known = [one[what] for one in flips if one[what]["value"] is not None]
    images = sum(one["images"] for one in known)
    return round(sum(one["value"] * one["images"] for one in known)), images


def dense_and_sparse(rows: Sequence[Row]) -> dict[Case, tuple[Row, list[Row]]]:
    """The row of the dense attack and those of sparse ones, where a network and goal has both."""
    found = {}
    for case, mine in by_case(rows).items():
        dense = [row for row in mine if is_dense(row)]
        sparse = [row for row in mine if not is_dense(row)]
        if dense and sparse:
            found[case] = dense[0], sparse
    return found


def interval_beside(dense: Row, sparse: Sequence[Row]) -> Literal["below", "overlaps", "above"]:
    """Where the interval of decided labels lies beside those of all sparse attacks."""
    low, high = _decided_interval(dense)
    others = [_decided_interval(row) for row in sparse]
    if high < min(one[0] for one in others):
        return "below"
    return "above" if low > max(one[1] for one in others) else "overlaps"


def _decided_interval(row: Row) -> tuple[float, float]:
    share = row["totals"]["decided"]
    low, high = (share["value"] if share[end] is None else share[end] for end in ("low", "high"))
    return low, high
