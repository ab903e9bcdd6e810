"""The table of docs/methods/pinprick.md that sets Pinprick beside σ-zero, from results/pinprick."""

from pathlib import Path
from typing import Any

import numpy as np

from pinprick.bench.store import Store
from pinprick.report.docs_measured import markdown_table

STORE = Path(__file__).parents[2] / "results" / "pinprick"
GOALS = {"untargeted": "none", "least_likely": "least likely", "random": "random"}
EFFORTS = ("fast", "balanced", "thorough")


def beside_sigma_zero() -> str:
    """Mean elements of the three efforts, over those of σ-zero with 1000 steps."""
    columns = ("cell", "correct", "success", "elements")
    frame = Store(STORE).scan().select(columns).collect()
    found = {name: frame[name].to_numpy() for name in columns}
    means: dict[tuple[str, str, str], float] = {}
    images: dict[tuple[str, str], int] = {}
    revisions = set()
    for key, (cell, _) in Store(STORE).cells().items():
        rows = (found["cell"] == key) & found["correct"]
        needed = np.where(found["success"], found["elements"].astype(float), np.inf)[rows]
        what = cell.attack.get("effort", cell.attack["name"])
        means[cell.model, cell.goal, what] = float(needed.mean())
        images[cell.model, cell.goal] = int(rows.sum())
        if cell.attack["name"] == "pinprick":
            revisions.add(cell.revision)
    table = [
        [
            model.removeprefix("pinprick:"),
            GOALS[goal],
            str(images[model, goal]),
            *_row(means, model, goal),
        ]
        for model, goal in sorted(images, key=lambda pair: (pair[0], list(GOALS).index(pair[1])))
    ]
    head = [
        "model",
        "target",
        "images",
        "σ-zero",
        *EFFORTS,
        *(f"{one} / σ-zero" for one in EFFORTS),
    ]
    said = ", ".join(map(str, sorted(revisions)))
    return f"{markdown_table(head, table)}\n\nRevision {said} of Pinprick."


def _row(means: dict[tuple[str, str, str], float], model: str, goal: str) -> list[str]:
    theirs = means[model, goal, "sigma_zero"]
    ours = [means.get((model, goal, effort)) for effort in EFFORTS]
    counts = [_words(mean) for mean in (theirs, *ours)]
    return counts + [_words(None if mean is None else mean / theirs) for mean in ours]


def _words(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"


PAGES: dict[str, Any] = {"docs/methods/pinprick.md": {"beside sigma_zero": beside_sigma_zero}}
