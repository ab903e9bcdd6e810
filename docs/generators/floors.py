"""Floor and ceiling of docs/results/optimum.md: the figure, the table, and the networks that vote.

Networks of the leaderboard have their floor from results/certified/ and their ceiling from the
leaderboard. The others have both from results/floors/.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from generators.certified import floor_and_ceiling
from pinprick.report.docs_measured import markdown_list, markdown_table
from pinprick.report.series_looks import COLOURS

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "results" / "floors"
FIGURE = ROOT / "docs" / "images" / "floors.png"
MOST = 30  # pixels up to which the figure goes
SHOWN = (0, 1, 2, 3, 5, 10, 20)  # pixels of the table
BOARD = {  # on the leaderboard
    "MNIST, standard": "pinprick:mnist_cnn",
    "MNIST, PGD-AT": "pinprick:mnist_cnn_pgd_at",
    "Fashion-MNIST, standard": "pinprick:fashion_cnn",
}
OWN = {  # files of results/floors
    "MNIST, Sparse-AT": "mnist_cnn_sparse_at",
    "MNIST, ablation": "mnist_cnn_ablation",
    "Fashion-MNIST, ablation": "fashion_cnn_ablation",
}
PANELS = (
    *("MNIST, standard", "MNIST, PGD-AT", "MNIST, Sparse-AT", "MNIST, ablation"),
    *("Fashion-MNIST, standard", "Fashion-MNIST, ablation"),
)
_FLOOR, _CEILING, _SMOOTHED, _UNKNOWN = *COLOURS[:2], "black", "#e3e3e3"

Row = dict[str, Any]


@dataclass(frozen=True)
class Curves:
    """Shares of all images by number of pixels, from 0 on.

    Attributes:
        images: How many images.
        floor: Certified to stay correct.
        ceiling: Not known to be fooled.
        smoothed: The smoothed classifier stays correct, with a probability; empty for no voting.
    """

    images: int
    floor: list[float]
    ceiling: list[float]
    smoothed: list[float]


@cache
def rows_of(name: str) -> list[Row]:
    return [json.loads(line) for line in (ROWS / f"{name}.jsonl").read_text().splitlines()]


@cache
def curves(title: str) -> Curves:
    """The curves of the network with this title."""
    if title in BOARD:
        both = floor_and_ceiling(BOARD[title], MOST)
        return Curves(both.images, both.floor, both.ceiling, [])
    rows = rows_of(OWN[title])
    floor = _shares(rows, lambda row, k: row["certified"] is None or row["certified"] >= k)
    ceiling = _shares(rows, lambda row, k: row["fewest_known"] is None or row["fewest_known"] > k)
    smoothed = []
    if "smoothed" in rows[0]:
        smoothed = _shares(rows, lambda row, k: row["smoothed"] >= k)
    return Curves(len(rows), floor, ceiling, smoothed)


def _shares(rows: list[Row], holds: Callable[[Row, int], bool]) -> list[float]:
    return [sum(holds(row, k) for row in rows) / len(rows) for k in range(MOST + 1)]


def table() -> str:
    """Floor and ceiling per network and number of pixels."""
    rows = []
    for title in PANELS:
        found = curves(title)
        cells = [_span(found.floor[k], found.ceiling[k]) for k in SHOWN]
        rows.append((title, str(found.images), *cells))
    return markdown_table(("network", "images", *(f"k = {k}" for k in SHOWN)), rows)


def _span(floor: float, ceiling: float) -> str:
    low, high = f"{100 * floor:.0f}", f"{100 * ceiling:.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def votes() -> str:
    """The networks that vote, one column each: what is certified, and what attacks need."""
    columns = {
        title: _votes(rows_of(name))
        for title, name in OWN.items()
        if "smoothed" in rows_of(name)[0]
    }
    names = list(next(iter(columns.values())))
    lines = [[name, *(column[name] for column in columns.values())] for name in names]
    return markdown_table(("what", *columns), lines)


def _votes(rows: list[Row]) -> dict[str, str]:
    right = [row for row in rows if row["fewest_known"] != 0]
    smooth = [row["smoothed"] for row in rows if row["smoothed"] >= 0]
    attacked = [row for row in right if row["attack_needs"] is not None]
    needs = [row["attack_needs"] for row in attacked]
    return {
        "correct images": f"{len(right)} of {len(rows)}",
        "pixels certified by votes, median": f"{median(row['certified'] for row in right):.0f}",
        "smoothed: correct and certified": f"{len(smooth)} of {len(rows)}",
        "smoothed radius, median": f"{median(smooth):.0f}",
        "smoothed: abstains": str(sum(row["smoothed_outcome"] == "abstains" for row in rows)),
        "pixels that `auto` needs: median (range)": (
            f"{median(needs):.0f} ({min(needs)} to {max(needs)})"
        ),
        "images where `auto` needs no more than the smoothed radius": str(
            sum(row["smoothed"] >= row["attack_needs"] for row in attacked)
        ),
        "images where Sparse-RS needs the fewest": str(
            sum(row["beaten_by_scores"] for row in rows)
        ),
    }


def source() -> str:
    """Where the rows are from."""
    lines = []
    for name in OWN.values():
        first = rows_of(name)[0]
        line = (
            f"`{name}` on `{first['data']}` ({first['device']}, commit {first['commit'][:7]}): "
            f"`{first['attack']}` (revision {first['revision']}) took {first['attack_seconds']:.0f}"
            f" s, the certificates {first['certify_seconds']:.0f} s."
        )
        if "draws" in first:
            line += (
                f" The smoothed classifier has {first['draws']} draws per image and alpha "
                f"{first['alpha']}; it took {first['smoothed_seconds']:.0f} s."
            )
        lines.append(line)
    return markdown_list(lines)


def save_figure() -> None:
    """Draw docs/images/floors.png again."""
    figure = Figure(figsize=(9.6, 5.6), dpi=110, layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    for axes, title in zip(panels.flat, PANELS, strict=True):
        _draw(axes, title)
    for axes in panels[:, 0]:
        axes.set_ylabel("images, %")
    for axes in panels[1]:
        axes.set_xlabel("changed pixels")
    handles = {
        text: line
        for axes in panels.flat
        for line, text in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside upper center", ncols=4, frameon=False
    )
    figure.savefig(FIGURE)


def _draw(axes: Axes, title: str) -> None:
    found, pixels = curves(title), list(range(MOST + 1))
    floor, ceiling = ([100 * share for share in each] for each in (found.floor, found.ceiling))
    axes.fill_between(
        pixels, floor, ceiling, step="post", color=_UNKNOWN, linewidth=0, label="not known"
    )
    axes.step(
        pixels, ceiling, where="post", color=_CEILING, ls="--", label="not fooled by any attack"
    )
    axes.step(pixels, floor, where="post", color=_FLOOR, label="certified")
    if found.smoothed:
        axes.step(
            pixels,
            [100 * share for share in found.smoothed],
            where="post",
            color=_SMOOTHED,
            linestyle=":",
            label="smoothed classifier, probability 0.999",
        )
    axes.set_title(title, fontsize=10)
    axes.set_xlim(0, MOST)
    axes.set_ylim(0, 103)
    axes.grid(alpha=0.3)


PAGES = {
    "docs/results/optimum.md": {
        "floor and ceiling": table,
        "networks that vote": votes,
        "source of floors": source,
    }
}
