"""The figures of the pages: q_a, the ablations, and fooling rates against the budget."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from generators.paper.rows import Layout
from generators.paper.sweeps import NETWORKS, RADII, sweep
from generators.paper.tables import ROBUST, TITLES
from generators.paper.text import first_of
from pinprick.bench.plan import Product

PANELS = {"a": ("a",), "λ": ("lam", "ce"), "τ": ("tau",)}
STYLES = {"6/255": "-", "4/255": "--"}
SHOWN = (
    "pinprick",
    "sigma_zero",
    "wifgsm",
    "wifgsm_printed",
    "fmn",
    "sparse_rs",
    "brusle",
    "cw_l0",
)
_RATE, _COUNT = "tab:blue", "tab:red"


def q_a() -> Figure:
    """Figure 2: q_a for several a."""
    figure = Figure(figsize=(4.6, 3.0), dpi=150, layout="constrained")
    axes = figure.subplots()
    x = np.linspace(-1.5, 1.5, 601)
    for a in (1.0, 0.5, 0.2, 0.1):
        axes.plot(x, np.exp(-((x / a) ** 2)) / (a * np.sqrt(np.pi)), label=f"a = {a:g}")
    axes.set_xlabel("x")
    axes.set_ylabel("$q_a(x)$")
    axes.legend(frameon=False)
    return figure


def ablations(plan: Layout) -> Figure:
    """Figure 7: three panels with two axes each, one row per network."""
    figure = Figure(figsize=(10.5, 6.2), dpi=130, layout="constrained")
    for row, (model, network) in zip(figure.subplots(2, 3), NETWORKS.items(), strict=True):
        for axes, (title, names) in zip(row, PANELS.items(), strict=True):
            _panel(plan, axes, model, title, names)
            axes.set_title(f"{network}: {title}", fontsize=9)
    return figure


def _panel(plan: Layout, axes: Axes, model: str, title: str, names: Sequence[str]) -> None:
    other = axes.twinx()
    for number, name in enumerate(names):
        for eps, radius in RADII.items():
            points = sweep(plan, model, radius, name)
            if not points:
                continue
            values = [value for value, _ in points]
            counts = [
                one.elements[one.fooled].mean() if one.fooled.any() else np.nan for _, one in points
            ]
            if title == "a":
                left = [float(one.seconds.mean()) for _, one in points]
            else:
                left = [100 * float(one.fooled.mean()) for _, one in points]
            style: dict[str, Any] = {
                "linestyle": STYLES[eps],
                "marker": "os"[number],
                "markersize": 3,
            }
            about = {"lam": " on the count", "ce": " on cross-entropy"}.get(name, "")
            axes.plot(values, left, color=_RATE, label=f"ε {eps}{about}", **style)
            other.plot(values, counts, color=_COUNT, **style)
    axes.set_xscale("linear" if title == "τ" else "log")
    axes.set_ylabel("seconds per image" if title == "a" else "fooled, %", color=_RATE)
    other.set_ylabel("elements of fooled images", color=_COUNT)
    axes.set_xlabel(title)
    if axes.lines:
        axes.legend(frameon=False, fontsize=6)


def strength(plan: Layout) -> Figure:
    """Table 2 as curves: the fooling rate against the number of elements."""
    figure = Figure(figsize=(9.5, 6.4), dpi=130, layout="constrained")
    for axes, (title, (model, _)) in zip(figure.subplots(2, 2).flat, ROBUST.items(), strict=True):
        for label in SHOWN:
            sample = first_of(plan.find(model, "untargeted", label, where=usual_start))
            if sample is not None:
                needed = np.sort(sample.elements)
                known = needed[np.isfinite(needed)]
                shares = 100 * np.arange(1, len(known) + 1) / sample.n
                axes.step(known, shares, where="post", label=TITLES[label], linewidth=1)
        axes.set_title(title if axes.lines else f"{title}: not measured", fontsize=9)
        axes.set_xscale("log")
        axes.set_xlabel("elements that may change")
        axes.set_ylabel("fooled, %")
        axes.grid(alpha=0.3, linewidth=0.5)
        if axes.lines:
            axes.legend(frameon=False, fontsize=6)
    return figure


def usual_start(one: Product) -> bool:
    """Products whose attacks start from 4/255."""
    return all(attack.card.name != "sparsefool" for attack in one.attacks)
