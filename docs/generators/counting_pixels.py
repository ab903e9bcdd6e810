"""The measured blocks of docs/why/counting_pixels.md, from the rows of the leaderboard."""

from functools import cache
from typing import Any

import numpy as np

from generators.leaderboard import LEADERBOARD
from pinprick.bench.cell import Cell
from pinprick.bench.store import Store
from pinprick.metrics.unit import Unit
from pinprick.report.docs_measured import markdown_table

MODEL = "file:models/cifar10_resnet18"
SHOWN = ("pinprick", "sigma_zero", "fmn", "sparse_pgd", "sparse_rs")
UNITS: tuple[Unit, ...] = ("elements", "pixels")
_COLUMNS = ("cell", "correct", "success", "success_8bit", "elements", "pixels")


@cache
def _columns() -> dict[str, Any]:
    """The columns of all rows of the leaderboard, as arrays."""
    frame = Store(LEADERBOARD).scan().select(_COLUMNS).collect()
    return {name: frame[name].to_numpy() for name in _COLUMNS}


@cache
def _cells() -> dict[str, Cell]:
    """The cells of the leaderboard by their keys."""
    return {key: cell for key, (cell, _) in Store(LEADERBOARD).cells().items()}


def units() -> str:
    """Medians in both units of attacks that can minimise either."""
    rows = []
    for name in SHOWN:
        for unit in UNITS:
            found = _rows_of(name, unit)
            medians = [_median(found, counted) for counted in UNITS]
            rows.append([f"`{name}`", unit, *medians, str(int(found.sum()))])
    head = ["attack", "minimises", "median elements", "median pixels", "images"]
    return markdown_table(head, rows)


def rounding() -> str:
    """How many adversarial images stop fooling when they are rounded to 8-bit values."""
    columns = _columns()
    fooled = columns["correct"] & columns["success"]
    lost = fooled & ~columns["success_8bit"]
    names = np.array([_cells()[key].attack["name"] for key in columns["cell"]])
    counts = {
        name: (int((lost & (names == name)).sum()), int((fooled & (names == name)).sum()))
        for name in np.unique(names)
    }
    worst = max(counts, key=lambda name: counts[name][0] / max(1, counts[name][1]))
    return (
        f"Of {int(fooled.sum())} adversarial images of the leaderboard, {int(lost.sum())} no "
        f"longer fool after rounding. The largest share is that of `{worst}`: {counts[worst][0]} "
        f"of {counts[worst][1]}."
    )


def _rows_of(name: str, unit: Unit) -> Any:
    """Which rows are of an attack on the model, over images that were correct before."""
    keys = [
        key
        for key, cell in _cells().items()
        if (cell.model, cell.goal) == (MODEL, "untargeted")
        and (cell.attack["name"], cell.attack.get("unit")) == (name, unit)
        and cell.attack.get("effort", "balanced") == "balanced"
    ]
    assert keys, f"the leaderboard has no {name} that minimises {unit} on {MODEL}"
    return np.isin(_columns()["cell"], keys) & _columns()["correct"]


def _median(rows: Any, unit: Unit) -> str:
    columns = _columns()
    needed = np.where(columns["success"], columns[unit].astype(float), np.inf)
    return f"{np.median(needed[rows]):g}"


PAGES = {"docs/why/counting_pixels.md": {"units": units, "rounding": rounding}}
