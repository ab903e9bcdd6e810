"""The tables of docs/methods/pinprick.md: beside σ-zero, and with one part left out."""

from pathlib import Path
from typing import Any

import numpy as np

from pinprick.bench.store import Store
from pinprick.report.docs_measured import markdown_table

RESULTS = Path(__file__).parents[2] / "results"
GOALS = {"untargeted": "none", "least_likely": "least likely", "random": "random"}
EFFORTS = ("fast", "balanced", "thorough")
PARTS = {
    "WithoutSignedSteps": "no signed steps",
    "WithoutTrims": "no trims",
    "WithoutAims": "no aims",
    "WithoutDraws": "no draws",
    "WithoutRegions": "no regions",
    "WithoutAnnealing": "no anneals",
    "WithoutSwaps": "no swap turns",
    "AnnealingAlone": "anneals alone",
    "StartsAlone": "starts alone",
}
Means = dict[tuple[str, str, str], float]  # by model, goal and attack


def beside_sigma_zero() -> str:
    """Mean elements of the three efforts, over those of σ-zero with 1000 steps."""
    means, images, revision = _means("pinprick")
    head = [
        "model",
        "target",
        "images",
        "σ-zero",
        *EFFORTS,
        *(f"{one} / σ-zero" for one in EFFORTS),
    ]
    table = [
        [_short(model), GOALS[goal], str(images[model, goal]), *_row(means, model, goal)]
        for model, goal in _in_order(images)
    ]
    return f"{markdown_table(head, table)}\n\n{revision}"


def without_a_part() -> str:
    """Mean elements with one part left out, over those of the whole attack."""
    means, images, revision = _means("ablation")
    head = ["model", "target", "images", *PARTS.values()]
    table = [
        [
            _short(model),
            GOALS[goal],
            str(images[model, goal]),
            *(_words(means[model, goal, part] / means[model, goal, "balanced"]) for part in PARTS),
        ]
        for model, goal in _in_order(images)
    ]
    return f"{markdown_table(head, table)}\n\n{revision}"


def _means(name: str) -> tuple[Means, dict[tuple[str, str], int], str]:
    """Mean elements, how many images they are of, and a sentence on Pinprick's revision."""
    store = Store(RESULTS / name)
    columns = ("cell", "correct", "success", "elements")
    frame = store.scan().select(columns).collect()
    found = {column: frame[column].to_numpy() for column in columns}
    means: Means = {}
    images: dict[tuple[str, str], int] = {}
    revisions = set()
    for key, (cell, _) in store.cells().items():
        rows = (found["cell"] == key) & found["correct"]
        needed = np.where(found["success"], found["elements"].astype(float), np.inf)[rows]
        what = cell.attack["name"].rpartition(":")[2]
        if what == "pinprick":
            what = cell.attack["effort"]
            revisions.add(cell.revision)
        means[cell.model, cell.goal, what] = float(needed.mean())
        images[cell.model, cell.goal] = int(rows.sum())
    return means, images, f"Revision {', '.join(map(str, sorted(revisions)))} of Pinprick."


def _in_order(images: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    return sorted(images, key=lambda pair: (_short(pair[0]), list(GOALS).index(pair[1])))


def _short(model: str) -> str:
    return model.removeprefix("pinprick:")


def _row(means: Means, model: str, goal: str) -> list[str]:
    theirs = means[model, goal, "sigma_zero"]
    ours = [means.get((model, goal, effort)) for effort in EFFORTS]
    counts = [_words(mean) for mean in (theirs, *ours)]
    return counts + [_words(None if mean is None else mean / theirs) for mean in ours]


def _words(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"


PAGES: dict[str, Any] = {
    "docs/methods/pinprick.md": {
        "beside sigma_zero": beside_sigma_zero,
        "without a part": without_a_part,
    }
}
