"""The measured blocks and the figure of docs/results/parity.md, from results/parity/pairs.json."""

import json
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.figure import Figure

from generators.dot_plot import draw_dots
from pinprick.report.docs_measured import markdown_list, markdown_table

ROOT = Path(__file__).parents[2]
PAIRS, FIGURE = ROOT / "results" / "parity" / "pairs.json", ROOT / "docs" / "images" / "parity.png"
NOT_MEASURED = "Not measured."
GOALS = {"untargeted": "none", "least_likely": "least likely"}
MODELS = {
    "file:models/cifar10_resnet18": "ResNet-18",
    "pinprick:cifar10_resnet20": "ResNet-20",
}
PAIR = ("attack", "their code", "target", "model")
FOUND = (*PAIR, "n", "fooled", "p", "mean", "fewer", "verdict")
COST = (*PAIR, "passes", "ms per image")

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
    return markdown_list(
        (
            f"Of {len(rows)} pairs, ours is better in {len(by_verdict['better'])}, "
            f"level in {level} and worse in {len(by_verdict['worse'])}.",
            f"Worse: {_names(by_verdict['worse'])}.",
            f"Better: {_names(by_verdict['better'])}.",
            f"Ours takes fewer passes in {fewer} of {len(rows)} pairs.",
            f"Their time per image is {median(ratios):.1f} times ours in the median, "
            f"from {min(ratios):.1f} to {max(ratios):.1f}.",
        ),
        numbered=True,
    )


def found_table() -> str:
    """What both sides find; where two numbers stand in a field, ours is the first."""
    return markdown_table(FOUND, ([*_pair(row), *_found(row)] for row in all_rows()))


def cost_table() -> str:
    """Passes and time of both sides."""
    return markdown_table(COST, ([*_pair(row), *_cost(row)] for row in all_rows()))


def _pair(row: Row) -> list[str]:
    return [
        f"`{row['settings']['ours']['name']}{_note(row)}`",
        row["titles"]["theirs"],
        GOALS[row["goal"]],
        MODELS[row["model"]],
    ]


def _found(row: Row) -> list[str]:
    ours, theirs = row["ours"], row["theirs"]
    both = (f"{one['mean']:.2f}" for one in (ours, theirs))
    return [
        str(row["images"]),
        f"{ours['fooled']}, {theirs['fooled']}",
        f"{row['p_fooled']:.2f}",
        f"{', '.join(both)} {row['measure']}" if ours["mean"] == ours["mean"] else "-",
        f"{row['ours_smaller']}, {row['theirs_smaller']}",
        verdict(row),
    ]


def _cost(row: Row) -> list[str]:
    sides = row["ours"], row["theirs"]
    passes = (f"{one['forwards']:.0f} + {one['backwards']:.0f}" for one in sides)
    return [", ".join(passes), ", ".join(f"{1000 * one['seconds']:.0f}" for one in sides)]


def save_figure() -> None:
    """Draw docs/images/parity.png again."""
    rows = all_rows()
    names = [
        f"{row['settings']['ours']['name']}{_note(row)}, {_whose(row)}"
        + (", targeted" if row["goal"] != "untargeted" else "")
        for row in rows
    ]
    figure = Figure(figsize=(8.6, 7.6), dpi=130, layout="constrained")
    rates, ratios = figure.subplots(1, 2, sharey=True)
    fooled = {
        side: [100 * row[side]["fooled"] / row["images"] for row in rows]
        for side in ("ours", "theirs")
    }
    draw_dots(rates, names, fooled)
    rates.set_xlabel("fooled images, %")
    costs = {
        "units": [row["ours"]["mean"] / row["theirs"]["mean"] for row in rows],
        "passes": [_passes(row, "ours") / _passes(row, "theirs") for row in rows],
        "time": [row["ours"]["seconds"] / row["theirs"]["seconds"] for row in rows],
    }
    draw_dots(ratios, names, costs, log=True)
    ratios.axvline(1, color="black", linewidth=0.8)
    ratios.set_xlabel("ours over theirs")
    for axes in (rates, ratios):
        axes.legend(loc="upper left", bbox_to_anchor=(0, 1.06), ncols=3, frameon=False)
    figure.savefig(FIGURE)


def _note(row: Row) -> str:
    """The settings that tell two pairs of one attack apart."""
    settings = row["settings"]["ours"]
    told = {name: settings[name] for name in ("k", "prox", "projected") if name in settings}
    return "".join(f" {name}={value}" for name, value in told.items())


def _whose(row: Row) -> str:
    """Whose code ours is compared with: "authors", or a library."""
    title = row["titles"]["theirs"]
    return "authors" if title.endswith("authors' code") else str(title.rpartition(" of ")[2])


def _passes(row: Row, who: str) -> float:
    return float(row[who]["forwards"] + row[who]["backwards"])


def _names(rows: Iterable[Row]) -> str:
    named = [f"`{row['settings']['ours']['name']}{_note(row)}`" for row in rows]
    return ", ".join(named) or "none"


def _if_there(block: Callable[[], str]) -> str:
    return block() if PAIRS.is_file() else NOT_MEASURED


PAGES = {
    "docs/results/parity.md": {
        "answer": partial(_if_there, answer),
        "found": partial(_if_there, found_table),
        "cost": partial(_if_there, cost_table),
    }
}
