"""The three plots of the page: kinds, places, and decided labels."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from generators.interpretation.rows import (
    DENSE,
    cases,
    connected,
    kind,
    name_of,
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


def kinds() -> Figure:
    """Shares of kinds per network and goal, the mean over sparse attacks."""
    found = list(cases(connected()))
    figure = Figure(figsize=(8, 0.3 * len(found) + 1), dpi=130, layout="constrained")
    axes, at = figure.subplots(), np.arange(len(found))
    left = np.zeros(len(found))
    for name in LABELS:
        shares = np.array([100 * np.mean([kind(row, name) for row in rows]) for *_, rows in found])
        colour, text = LOOKS[name].colour, "black" if name in _PALE else "white"
        bars = axes.barh(at, shares, left=left, color=colour, label=name)
        numbers = [f"{share:.0f}" if share >= _WIDE else "" for share in shares]
        axes.bar_label(bars, numbers, label_type="center", color=text, fontsize=7)
        left += shares
    axes.set_yticks(at, [f"{network}, {goal}" for network, goal, _ in found], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of groups, %; mean over attacks")
    figure.legend(
        *axes.get_legend_handles_labels(), ncols=6, loc="outside upper center", fontsize=7
    )
    return figure


def places() -> Figure:
    """Of groups on exactly one map, the share that lies as the paper says."""
    found = list(cases(connected()))
    figure = Figure(figsize=(8, 0.28 * len(found) + 1), dpi=130, layout="constrained")
    axes = figure.subplots()
    measured = chance = None
    for at, (_, _, rows) in enumerate(found):
        said, against = on_one_map(rows)
        if said + against:
            low, high = wilson_interval(said, said + against)
            axes.plot([100 * low, 100 * high], [at, at], color="tab:blue", linewidth=1)
            share = 100 * said / (said + against)
            (measured,) = axes.plot(share, at, "o", color="tab:blue", markersize=4)
        null = null_share(rows)
        if null is not None:
            (chance,) = axes.plot(100 * null, at, "x", color="tab:red", markersize=5)
    axes.axvline(50, color="grey", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(found)), [f"{net}, {goal}" for net, goal, _ in found], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("groups on the map that the paper says, %")
    named = {"measured, 95 % interval": measured, "by chance, over all shifts": chance}
    shown = {name: line for name, line in named.items() if line is not None}
    axes.legend(list(shown.values()), list(shown), loc="lower left", fontsize=8, frameon=False)
    return figure


def decided() -> Figure:
    """Decided labels against the number of changed pixels, with equal sampling for all."""
    figure = Figure(figsize=(5.6, 3.4), dpi=130, layout="constrained")
    axes = figure.subplots()
    for dense, marker in ((False, "o"), (True, "s")):
        rows = [row for row in same_sampling() if (name_of(row) == DENSE) == dense]
        pixels = [row["mean_pixels"] for row in rows]
        shares = [100 * row["totals"]["decided"]["value"] for row in rows]
        label = "I-FGSM" if dense else "sparse attacks"
        axes.plot(pixels, shares, marker, markersize=4, label=label)
    axes.set_xscale("log")
    axes.set_ylim(80, 100)
    axes.set_xlabel("changed pixels, mean")
    axes.set_ylabel("decided labels, %")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3, linewidth=0.5)
    return figure


PLOTS = {"kinds": kinds, "places": places, "decided": decided}


def save() -> None:
    """Draw the plots of the page again."""
    for name, draw in PLOTS.items():
        draw().savefig(IMAGES / f"interpretation_{name}.png")
