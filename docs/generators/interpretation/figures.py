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

IMAGES = Path(__file__).parents[2] / "images"
_COLOURS = ("#b03060", "#2e8b57", "#b8a04a", "#999999", "#5566bb", "#dddddd")


def kinds() -> Figure:
    """Shares of kinds per network and goal, the mean over sparse attacks."""
    found = list(cases(connected()))
    figure = Figure(figsize=(8, 0.3 * len(found) + 1), dpi=130, layout="constrained")
    axes, at = figure.subplots(), np.arange(len(found))
    left = np.zeros(len(found))
    for name, colour in zip(LABELS, _COLOURS, strict=True):
        shares = np.array([100 * np.mean([kind(row, name) for row in rows]) for *_, rows in found])
        axes.barh(at, shares, left=left, color=colour, label=name)
        left += shares
    axes.set_yticks(at, [f"{network}, {goal}" for network, goal, _ in found], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("share of groups, %")
    figure.legend(
        *axes.get_legend_handles_labels(), ncols=6, loc="outside upper center", fontsize=7
    )
    return figure


def places() -> Figure:
    """Of groups on exactly one map, the share that lies as the paper says."""
    found = list(cases(connected()))
    figure = Figure(figsize=(8, 0.28 * len(found) + 1), dpi=130, layout="constrained")
    axes = figure.subplots()
    for at, (_, _, rows) in enumerate(found):
        said, against = on_one_map(rows)
        if said + against:
            low, high = wilson_interval(said, said + against)
            axes.plot([100 * low, 100 * high], [at, at], color="tab:blue", linewidth=1)
            axes.plot(100 * said / (said + against), at, "o", color="tab:blue", markersize=4)
        null = null_share(rows)
        if null is not None:
            axes.plot(100 * null, at, "x", color="tab:red", markersize=5)
    axes.axvline(50, color="grey", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(found)), [f"{net}, {goal}" for net, goal, _ in found], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel(
        "groups on the map that the paper says, % (dot); by chance over all shifts (cross)"
    )
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


def save() -> None:
    """Draw the plots of the page again."""
    for name, draw in (("kinds", kinds), ("places", places), ("decided", decided)):
        draw().savefig(IMAGES / f"interpretation_{name}.png")
