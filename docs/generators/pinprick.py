"""The tables of docs/methods/pinprick.md: beside σ-zero, at other speeds, without one part."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pinprick.bench.cell import Cell
from pinprick.bench.store import Store
from pinprick.report.docs_measured import markdown_table
from pinprick.speed_names import SPEEDS

RESULTS = Path(__file__).parents[2] / "results"
GOALS = {"untargeted": "none", "least_likely": "least likely", "random": "random"}
EFFORTS = ("fast", "balanced", "thorough")
PARTS = {
    "WithoutSignedSteps": "no signed steps",
    "WithoutTrims": "no trims",
    "WithoutAims": "no aims",
    "WithoutDraws": "no draws",
    "WithoutValueSteps": "no value steps",
    "WithoutAnnealsFirst": "starts first",
    "WithoutFastAnneals": "no fast",
    "WithoutSlowAnneals": "no slow",
    "WithoutAnnealing": "starts alone",
    "AnnealingAlone": "anneals alone",
}
Means = dict[tuple[str, str, str], float]  # by model, goal and attack, or speed


def beside_sigma_zero() -> str:
    """Mean elements of the three efforts, over those of σ-zero with 1000 steps."""
    means, images, revision = means_of("pinprick")
    head = [
        "model",
        "target",
        "images",
        "σ-zero",
        *EFFORTS,
        *(f"{one} / σ-zero" for one in EFFORTS),
    ]
    table = [
        [short(model), GOALS[goal], str(images[model, goal]), *_row(means, model, goal)]
        for model, goal in in_order(images)
    ]
    return f"{markdown_table(head, table)}\n\n{revision}"


def at_other_speeds() -> str:
    """Mean elements at all speeds, over those at "exact"; "-" where one was not measured."""
    means, images, revision = means_of("pinprick", speed_of)
    others = [speed for speed in SPEEDS if speed != "exact"]
    head = ["model", "target", "images", *SPEEDS, *(f"{speed} / exact" for speed in others)]
    table = []
    for task in in_order(images):
        found = {speed: means.get((*task, speed)) for speed in SPEEDS}
        if sum(mean is not None for mean in found.values()) > 1:
            ratios = (over(found[speed], found["exact"]) for speed in others)
            counts = [_words(mean) for mean in found.values()]
            row = [short(task[0]), GOALS[task[1]], str(images[task]), *counts]
            table.append([*row, *map(_words, ratios)])
    return f"{markdown_table(head, table)}\n\n{revision}"


def without_a_part() -> str:
    """Mean elements with one part left out, over those of the whole attack."""
    means, images, revision = means_of("ablation")
    head = ["model", "target", "images", *PARTS.values()]
    table = [
        [
            short(model),
            GOALS[goal],
            str(images[model, goal]),
            *(_words(means[model, goal, part] / means[model, goal, "balanced"]) for part in PARTS),
        ]
        for model, goal in in_order(images)
    ]
    return f"{markdown_table(head, table)}\n\n{revision}"


def attack_of(cell: Cell) -> str | None:
    """The effort of Pinprick or the name of another attack; None at other speeds than "exact"."""
    name = cell.attack["name"].rpartition(":")[2]
    if cell.speed != "exact":
        return None
    return str(cell.attack["effort"]) if name == "pinprick" else str(name)


def speed_of(cell: Cell) -> str | None:
    """The speed of a balanced Pinprick on a GPU; None for another cell."""
    balanced = cell.attack["name"] == "pinprick" and cell.attack["effort"] == "balanced"
    return cell.speed if balanced and cell.device == "cuda" else None


def means_of(
    name: str, label: Callable[[Cell], str | None] = attack_of
) -> tuple[Means, dict[tuple[str, str], int], str]:
    """Mean elements, how many images they are of, and a sentence on Pinprick's revision.

    Cells count that have a label. Rows of a GPU count where a label has some. A mean is over the
    images that all labels have on a model, with a goal.
    """
    store = Store(RESULTS / name)
    columns = ("cell", "index", "correct", "success", "elements")
    frame = store.scan().select(columns).collect()
    found = {column: frame[column].to_numpy() for column in columns}
    cells = {key: cell for key, (cell, _) in store.cells().items() if label(cell) is not None}
    runs = {key: (cell.model, cell.goal, label(cell) or "") for key, cell in cells.items()}
    on_gpu = {runs[key] for key, cell in cells.items() if cell.device == "cuda"}
    needed: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    revisions = set()
    for key, cell in cells.items():
        model, goal, what = runs[key]
        if cell.device != "cuda" and (model, goal, what) in on_gpu:
            continue
        if cell.attack["name"] == "pinprick":
            revisions.add(cell.revision)
        rows = (found["cell"] == key) & found["correct"]
        elements = np.where(found["success"], found["elements"].astype(float), np.inf)[rows]
        mine = needed.setdefault((model, goal), {}).setdefault(what, {})
        mine.update(zip(found["index"][rows].tolist(), elements.tolist(), strict=True))
    means: Means = {}
    images = {}
    for task, attacks in needed.items():
        shared = set.intersection(*map(set, attacks.values()))
        images[task] = len(shared)
        for what, known in attacks.items():
            means[(*task, what)] = float(np.mean([known[one] for one in shared]))
    return means, images, f"Revision {', '.join(map(str, sorted(revisions)))} of Pinprick."


def in_order(images: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    return sorted(images, key=lambda pair: (short(pair[0]), list(GOALS).index(pair[1])))


def short(model: str) -> str:
    return model.removeprefix("pinprick:").removeprefix("file:models/")


def _row(means: Means, model: str, goal: str) -> list[str]:
    theirs = means.get((model, goal, "sigma_zero"))
    ours = [means.get((model, goal, effort)) for effort in EFFORTS]
    counts = [_words(mean) for mean in (theirs, *ours)]
    ratios = (over(mean, theirs) for mean in ours)
    return counts + [_words(ratio) for ratio in ratios]


def over(one: float | None, other: float | None) -> float | None:
    """One mean over another; None where one of them is not known."""
    return one / other if one and other else None


def _words(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"


PAGES: dict[str, Any] = {
    "docs/methods/pinprick.md": {
        "beside sigma_zero": beside_sigma_zero,
        "at other speeds": at_other_speeds,
        "without a part": without_a_part,
    }
}
