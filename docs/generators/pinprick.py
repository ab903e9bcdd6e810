"""The tables of docs/methods/pinprick.md: beside σ-zero, and with one part left out."""

from pathlib import Path
from typing import Any

import numpy as np

from pinprick.bench.cell import Cell
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
    "WithoutValueSteps": "no value steps",
    "WithoutAnnealsFirst": "starts first",
    "WithoutFastAnneals": "no fast",
    "WithoutSlowAnneals": "no slow",
    "WithoutAnnealing": "starts alone",
    "AnnealingAlone": "anneals alone",
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
    """Mean elements, how many images they are of, and a sentence on Pinprick's revision.

    Rows of a GPU count where an attack has some. Speeds other than "exact" do not count. A mean is
    over the images that all attacks have on a model, with a goal.
    """
    store = Store(RESULTS / name)
    columns = ("cell", "index", "correct", "success", "elements")
    frame = store.scan().select(columns).collect()
    found = {column: frame[column].to_numpy() for column in columns}
    cells = {key: cell for key, (cell, _) in store.cells().items() if cell.speed == "exact"}
    on_gpu = {_run(cell) for cell in cells.values() if cell.device == "cuda"}
    needed: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    revisions = set()
    for key, cell in cells.items():
        model, goal, what = _run(cell)
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


def _run(cell: Cell) -> tuple[str, str, str]:
    """Model, goal, and the effort of Pinprick or the name of another attack."""
    name = cell.attack["name"].rpartition(":")[2]
    return cell.model, cell.goal, cell.attack["effort"] if name == "pinprick" else name


def _in_order(images: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    return sorted(images, key=lambda pair: (_short(pair[0]), list(GOALS).index(pair[1])))


def _short(model: str) -> str:
    return model.removeprefix("pinprick:").removeprefix("file:models/")


def _row(means: Means, model: str, goal: str) -> list[str]:
    theirs = means.get((model, goal, "sigma_zero"))
    ours = [means.get((model, goal, effort)) for effort in EFFORTS]
    counts = [_words(mean) for mean in (theirs, *ours)]
    ratios = (mean / theirs if mean and theirs else None for mean in ours)
    return counts + [_words(ratio) for ratio in ratios]


def _words(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"


PAGES: dict[str, Any] = {
    "docs/methods/pinprick.md": {
        "beside sigma_zero": beside_sigma_zero,
        "without a part": without_a_part,
    }
}
