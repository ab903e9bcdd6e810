"""The tables and values of docs/reference/checks.md, from results/numerical_noise/."""

import json
from functools import cache, partial
from pathlib import Path
from typing import Any

from pinprick.report.docs_measured import markdown_table

ROWS = Path(__file__).parents[2] / "results" / "numerical_noise"
MODELS = ("fashion_cnn", "mnist_cnn", "cifar10_resnet20", "cifar10_resnet20_pgd_at")
COLUMNS = {
    "CPU, float32": ("CPU", "float32"),
    "H200, float32": ("NVIDIA H200", "float32"),
    "H200, float16": ("NVIDIA H200", "float16"),
    "H200, bfloat16": ("NVIDIA H200", "bfloat16"),
}
ATTACKS = {
    "pinprick,effort=fast": "Pinprick, effort fast",
    "sigma_zero,steps=300": "σ-zero, 300 steps",
    "wifgsm": "WI-FGSM",
}


@cache
def all_rows() -> list[dict[str, Any]]:
    lines = [
        line for path in sorted(ROWS.glob("*.jsonl")) for line in path.read_text().splitlines()
    ]
    return [json.loads(line) for line in lines]


def largest() -> str:
    """The largest change in logits by model, device and precision."""
    found = {
        (row["model"], row["run"]["device"], row["precision"]): row["largest"] for row in all_rows()
    }
    rows = [
        [f"`pinprick:{name}`", *(_short(found[f"pinprick:{name}", *of]) for of in COLUMNS.values())]
        for name in MODELS
    ]
    return markdown_table(("model", *COLUMNS), rows)


def ratio(column: str, *precisions: str) -> str:
    """How many times what four images show the largest change is: least and most."""
    found = [row[column] for row in all_rows() if row["precision"] in precisions]
    return f"{min(found):.1f} to {max(found):.1f}"


def most(precision: str) -> str:
    found = [row["ratio_most"] for row in all_rows() if row["precision"] == precision]
    return f"{max(found):.1f}"


def guard() -> str:
    """Whether images fool alone, with the guard against noise and without it."""
    document = json.loads((ROWS / "fools_alone_384.json").read_text())
    rows = []
    for row in document["rows"]:
        polished = row["polished"]
        rows.append(
            (
                ATTACKS[row["attack"]],
                "yes" if row["guard"] else "no",
                f"{polished['fooled']} of {document['images']}",
                str(polished["not_alone"]),
                str(polished["not_in_some_batch"]),
                _short(polished["nearest_margin"]),
                f"{polished['mean_pixels']:.2f}",
            )
        )
    columns = ("attack", "guard", "fooled", "not alone", "batch", "margin", "mean pixels")
    return markdown_table(columns, rows)


def _short(number: float) -> str:
    """Two digits; without a padded exponent."""
    return f"{number:.2g}".replace("e-0", "e-")


PAGES = {
    "docs/reference/checks.md": {
        "noise": largest,
        "ratio, median": partial(ratio, "ratio_median", "float32", "float16", "bfloat16"),
        **{f"ratio, {name}": partial(most, name) for name in ("float32", "float16", "bfloat16")},
        "guard": guard,
    }
}
