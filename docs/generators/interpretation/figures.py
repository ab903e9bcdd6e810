"""The three plots of the page: kinds, places, and decided labels."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from generators.interpretation.rows import (
    Case,
    Row,
    by_case,
    connected,
    is_dense,
    kind,
    null_share,
    on_one_map,
    same_sampling,
)
from pinprick.explain.noise.labels import LABELS
from pinprick.metrics.wilson import wilson_interval
from pinprick.report.group_outlines import LOOKS

IMAGES = Path(__file__).parents[2] / "images"
_WIDE = 4  # percent from which a bar has its number
_PALE = ("leading", "mixed", "counter-productive")  # kinds whose numbers are black
_BAND = 0.7  # height of the intervals of one network and goal, in rows


def kinds() -> Figure:
    """Shares of kinds per network and goal, the mean over sparse attacks."""
    found = by_case(connected())
    figure, axes = _rows_of_cases(found, height=0.3)
    left = np.zeros(len(found))
    for name in LABELS:
        shares = np.array(
            [100 * np.mean([kind(row, name) for row in rows]) for rows in found.values()]
        )
        colour, text = LOOKS[name].colour, "black" if name in _PALE else "white"
        bars = axes.barh(range(len(found)), shares, left=left, color=colour, label=name)
        numbers = [f"{share:.0f}" if share >= _WIDE else "" for share in shares]
        axes.bar_label(bars, numbers, label_type="center", color=text, fontsize=7)
        left += shares
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of groups, %; mean over sparse attacks", fontsize=8)
    _legend_above(figure, axes)
    return figure


def places() -> Figure:
    """Of groups on exactly one map, the share that lies as the paper says."""
    found = by_case(connected())
    figure, axes = _rows_of_cases(found, height=0.28)
    measured, chance = "measured, with its 95 % interval", "by chance, over all shifts"
    for at, rows in enumerate(found.values()):
        said, against = on_one_map(rows)
        if said + against:
            ends = [100 * end for end in wilson_interval(said, said + against)]
            share = 100 * said / (said + against)
            axes.plot(ends, [at, at], color="tab:blue", linewidth=1)
            axes.plot(share, at, "o", color="tab:blue", markersize=4, label=measured)
        null = null_share(rows)
        if null is not None:
            axes.plot(100 * null, at, "x", color="tab:red", markersize=5, label=chance)
    axes.axvline(50, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xlim(0, 100)
    axes.set_xlabel("groups on the map that the paper says, % of those on exactly one", fontsize=8)
    _legend_above(figure, axes)
    return figure


def decided() -> Figure:
    """Decided labels of every attack with their intervals, with equal sampling for all."""
    found = by_case(same_sampling())
    most = max(map(len, found.values()))
    figure, axes = _rows_of_cases(found, height=0.15 + 0.06 * most)
    for at, rows in enumerate(found.values()):
        for row, up in zip(rows, np.linspace(-_BAND / 2, _BAND / 2, len(rows)), strict=True):
            colour, marker, label = (
                ("tab:orange", "s", "I-FGSM")
                if is_dense(row)
                else ("tab:blue", "o", "one sparse attack")
            )
            _draw_interval(axes, row["totals"]["decided"], at + up, colour)
            share = 100 * row["totals"]["decided"]["value"]
            axes.plot(share, at + up, marker, color=colour, markersize=3, label=label)
    for between in range(1, len(found)):
        axes.axhline(between - 0.5, color="grey", linewidth=0.4)
    axes.grid(axis="x", alpha=0.3, linewidth=0.5)
    axes.set_xlabel("decided labels, %; lines are 95 % intervals", fontsize=8)
    _legend_above(figure, axes)
    return figure


def _draw_interval(axes: Axes, share: Row, at: float, colour: str) -> None:
    if share["low"] is not None:
        axes.plot([100 * share["low"], 100 * share["high"]], [at, at], color=colour, linewidth=1)


def _rows_of_cases(found: dict[Case, list[Row]], *, height: float) -> tuple[Figure, Axes]:
    """A figure with one row per network and goal, from top to bottom."""
    figure = Figure(figsize=(8, height * len(found) + 1), dpi=130, layout="constrained")
    axes = figure.subplots()
    axes.set_yticks(range(len(found)), map(", ".join, found), fontsize=7)
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize=8)
    return figure, axes


def _legend_above(figure: Figure, axes: Axes) -> None:
    """Every label once, above the axes, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    figure.legend(
        list(shown.values()), list(shown), ncols=6, loc="outside upper center", fontsize=7
    )


PLOTS = {"kinds": kinds, "places": places, "decided": decided}


def save() -> None:
    """Draw the plots of the page again."""
    for name, draw in PLOTS.items():
        draw().savefig(IMAGES / f"interpretation_{name}.png")
