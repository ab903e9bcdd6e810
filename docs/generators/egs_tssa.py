"""The tables of docs/methods/egs_tssa.md, from the rows in results/egs_tssa/."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from pinprick.report.docs_measured import markdown_table

ROWS = Path(__file__).parents[2] / "results" / "egs_tssa"
NETWORKS = {
    "pinprick:cifar10_resnet20": "ResNet-20, CIFAR-10",
    "file:models/cifar10_resnet18": "ResNet-18, CIFAR-10",
    "efficientnet_lite0": "EfficientNet-Lite0, 224 px",
}
CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
WIDTHS = {"small": "16"}
PRECISIONS = ("float32", "tf32", "bfloat16")

Row = dict[str, Any]


@cache
def all_rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (ROWS / f"{name}.jsonl").read_text().splitlines()]


def rows_of(what: str, *names: str) -> list[Row]:
    """The rows of one kind in some files."""
    return [row for name in names for row in all_rows(name) if row["what"] == what]


def goal(row: Row) -> str:
    return "untargeted" if row["target"] is None else CIFAR10[row["target"]]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def trained() -> str:
    """One row per training: fooling rate, pixels and time."""
    rows = []
    for row in rows_of("training", "h200", "h200_targets"):
        one = row["single_pass"]
        low, high = one["interval"]
        rows.append(
            (
                NETWORKS[row["model"]],
                goal(row),
                WIDTHS.get(row["name"], "64"),
                f"{percent(one['fooling_rate'])} [{100 * low:.1f}, {100 * high:.1f}]",
                f"{one['pixels']:.0f}",
                f"{one['elements']:.0f}",
                str(one["images"]),
                f"{row['seconds']:.0f} s",
            )
        )
    columns = ("network", "goal", "`base`", "fooling rate", "pixels", "elements")
    return markdown_table((*columns, "n", "training"), rows)


def budgets() -> str:
    """Fooling rate by the number of pixels."""
    rows = [
        (
            NETWORKS[row["model"]],
            goal(row),
            row["settings"]["k"],
            percent(row["fooling_rate"]),
            f"{row['pixels']:.1f}",
            str(row["n"]),
        )
        for row in rows_of("attack", "h200", "h200_targets")
        if "k" in row["settings"]
    ]
    return markdown_table(("network", "goal", "`k`", "fooling rate", "pixels", "n"), rows)


def second_stage() -> str:
    """With Pinprick for the images that one pass of the generator does not fool."""
    rows = [
        (
            NETWORKS[row["model"]],
            percent(row["fooling_rate"]),
            f"{row['pixels']:.1f}",
            f"{row['forwards']:.1f} + {row['backwards']:.1f}",
            str(row["n"]),
        )
        for row in rows_of("attack", "h200_targets")
        if "fallback" in row["settings"]
    ]
    return markdown_table(("network", "fooling rate", "pixels", "passes", "n"), rows)


def confidence() -> str:
    """The small generator by the confidence that it was trained with."""
    found = {row["name"]: row for row in rows_of("training", "h200_confidence")}
    chosen = [(found[name]["confidence"], found[name]) for name in ("try0", "try1")]
    chosen.append((100, rows_of("training", "h200")[0]))
    rows = [
        (
            str(value),
            percent(row["single_pass"]["fooling_rate"]),
            f"{row['single_pass']['pixels']:.0f}",
            str(row["n"]),
        )
        for value, row in chosen
    ]
    return markdown_table(("`confidence`", "fooling rate", "pixels", "n"), rows)


def alone() -> str:
    """Images per second of the generator alone, on a GPU that nothing else used."""
    rows = []
    for name in ("h200_confidence", "h200_targets"):
        found = {
            (row["name"], row.get("layout", "channels_last"), row["precision"]): row
            for row in rows_of("generator alone", name)
        }
        for base, layout in dict.fromkeys(key[:2] for key in found):
            speeds = (f"{found[base, layout, kind]['images_per_second']:,}" for kind in PRECISIONS)
            rows.append((WIDTHS.get(base, "64"), layout.replace("_", " "), *speeds))
    return markdown_table(("`base`", "layout", "float32", "TF32", "bfloat16"), rows)


PAGES = {
    "docs/methods/egs_tssa.md": {
        "trained": trained,
        "budgets": budgets,
        "second stage": second_stage,
        "confidence": confidence,
        "generator alone": alone,
    }
}
