"""The measured blocks of docs/results/parity.md, from results/parity/pairs.json."""

import json
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

from pinprick.report.docs_measured import markdown_table

PAIRS = Path(__file__).parents[2] / "results" / "parity" / "pairs.json"
NOT_MEASURED = "Not measured."
GOALS = {"untargeted": "none", "least_likely": "least likely"}
MODELS = {
    "file:models/cifar10_resnet18": "ResNet-18",
    "pinprick:cifar10_resnet20": "ResNet-20",
}
COLUMNS = (
    *("attack", "their code", "target", "model", "n", "fooled", "p", "mean", "fewer"),
    *("passes", "ms per image", "verdict"),
)

Row = dict[str, Any]


@cache
def all_rows() -> list[Row]:
    rows: list[Row] = json.loads(PAIRS.read_text(encoding="utf-8"))
    return rows


def verdict(row: Row) -> str:
    """Whether ours is better, worse or neither."""
    if row["worse"] == row["better"]:
        return "level"
    return "worse" if row["worse"] else "better"


def answer() -> str:
    """How many pairs are better, level and worse, and what passes and time they take."""
    rows = all_rows()
    by_verdict = {
        name: [row for row in rows if verdict(row) == name] for name in ("better", "worse")
    }
    level = len(rows) - sum(map(len, by_verdict.values()))
    fewer = sum(_passes(row, "ours") < _passes(row, "theirs") for row in rows)
    ratios = [row["theirs"]["seconds"] / row["ours"]["seconds"] for row in rows]
    return "\n".join(
        (
            f"1. {len(rows)} pairs: ours is better in {len(by_verdict['better'])}, "
            f"level in {level}, worse in {len(by_verdict['worse'])}.",
            f"2. Worse: {_names(by_verdict['worse'])}.",
            f"3. Better: {_names(by_verdict['better'])}.",
            f"4. Ours takes fewer passes in {fewer} of {len(rows)} pairs.",
            f"5. Their time per image is {median(ratios):.1f} times ours in the median, "
            f"from {min(ratios):.1f} to {max(ratios):.1f}.",
        )
    )


def table() -> str:
    """One row per pair; where two numbers stand in a field, ours is the first."""
    return markdown_table(COLUMNS, map(_fields, all_rows()))


def _fields(row: Row) -> list[str]:
    ours, theirs = row["ours"], row["theirs"]
    passes = (f"{one['forwards']:.0f} + {one['backwards']:.0f}" for one in (ours, theirs))
    both = (f"{one['mean']:.2f}" for one in (ours, theirs))
    mean = f"{', '.join(both)} {row['measure']}" if ours["mean"] == ours["mean"] else "-"
    return [
        f"`{row['settings']['ours']['name']}`{_note(row)}",
        row["titles"]["theirs"],
        GOALS[row["goal"]],
        MODELS[row["model"]],
        str(row["images"]),
        f"{ours['fooled']}, {theirs['fooled']}",
        f"{row['p_fooled']:.2f}",
        mean,
        f"{row['ours_smaller']}, {row['theirs_smaller']}",
        ", ".join(passes),
        ", ".join(f"{1000 * one['seconds']:.0f}" for one in (ours, theirs)),
        verdict(row),
    ]


def _note(row: Row) -> str:
    """The settings that tell two pairs of one attack apart."""
    settings = row["settings"]["ours"]
    told = {name: settings[name] for name in ("k", "prox", "projected") if name in settings}
    return "".join(f", {name} {value}" for name, value in told.items())


def _passes(row: Row, who: str) -> float:
    return float(row[who]["forwards"] + row[who]["backwards"])


def _names(rows: Iterable[Row]) -> str:
    named = [
        f"`{row['settings']['ours']['name']}`{_note(row)} against {row['titles']['theirs']}"
        + (f" (target {GOALS[row['goal']]})" if row["goal"] != "untargeted" else "")
        for row in rows
    ]
    return "; ".join(named) or "none"


def _if_there(block: Callable[[], str]) -> str:
    return block() if PAIRS.is_file() else NOT_MEASURED


PAGES = {
    "docs/results/parity.md": {
        "answer": partial(_if_there, answer),
        "pairs": partial(_if_there, table),
    }
}
