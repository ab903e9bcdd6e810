"""The figures of the pages, from rows and from what the paper prints."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from generators.dot_plot import draw_dots
from generators.paper import claims
from generators.paper.answers import usual_start
from generators.paper.printed import LITE0, RESNET18, SPARSEST, TITLES, paper_value, published
from generators.paper.robust import ROBUST
from generators.paper.rows import Layout, Sample, on_shared_images
from generators.paper.sweeps import NETWORKS, RADII, all_sweeps, sweep
from generators.paper.text import first_of
from generators.paper.timing import speedups
from generators.paper.transfer import WHITE_BOX
from pinprick.report.series_looks import COLOURS

PANELS = {"a": ("a",), "λ": ("lam", "ce"), "τ": ("tau",)}
STYLES = {"6/255": "-", "4/255": "--"}
CURVES = ("pinprick", "sigma_zero", "wifgsm", "fmn", "sparse_rs", "brusle", "cw_l0")
LINES = ("-", "--", "-.", ":", "-", "--", "-.")
ENOUGH = 40  # images of an attack in the figure of table 1
_RATE, _COUNT = COLOURS[0], COLOURS[1]


def q_a() -> Figure:
    """Figure 2: q_a for several a."""
    figure = Figure(figsize=(4.6, 3.0), dpi=150, layout="constrained")
    axes = figure.subplots()
    x = np.linspace(-1.5, 1.5, 601)
    for number, a in enumerate((1.0, 0.5, 0.2, 0.1)):
        values = np.exp(-((x / a) ** 2)) / (a * np.sqrt(np.pi))
        axes.plot(x, values, LINES[number], color=COLOURS[number], label=f"a = {a:g}")
    axes.set_xlabel("x")
    axes.set_ylabel("$q_a(x)$")
    axes.legend(frameon=False)
    return figure


def sparsity(plan: Layout) -> Figure:
    """Table 1: the paper's elements beside ours, on both sets of images."""
    places = ((RESNET18, 0, "CIFAR-10"), (LITE0, 1, "224 px, other networks"))
    samples = [_enough(plan, model) for model, _, _ in places]
    found = {
        label: [
            value
            for (_, place, _), ours in zip(places, samples, strict=True)
            for value in _both(ours, label, place)
        ]
        for label in TITLES
        if label != SPARSEST and not label.startswith("onepixel")
    }
    shown = {label: values for label, values in found.items() if not np.isnan(values).all()}
    titles = [TITLES[label] for label in shown]
    figure = Figure(figsize=(8.2, 4.0), dpi=130, layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for number, (axes, (_, _, title)) in enumerate(zip(panels, places, strict=True)):
        paper, ours = ([one[2 * number + side] for one in shown.values()] for side in (0, 1))
        draw_dots(axes, titles, {"the paper": paper, "ours": ours}, log=True)
        n = max((one.n for one in samples[number].values()), default=0)
        axes.set_title(f"{title}, untargeted, n {n}", fontsize=10)
        axes.set_xlabel("mean elements")
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2, frameon=False)
    return figure


def _enough(plan: Layout, model: str) -> dict[str, Sample]:
    """Attacks that fool every image and have enough of them, on those that all have."""
    every = {label: first_of(plan.find(model, "untargeted", label)) for label in TITLES}
    known = {label: one for label, one in every.items() if one is not None and one.n >= ENOUGH}
    return on_shared_images({label: one for label, one in known.items() if one.fooled.all()})


def _both(ours: Mapping[str, Sample], label: str, place: int) -> tuple[float, float]:
    """Elements as printed, and mean elements of ours."""
    printed = paper_value(published()["table1"]["elements"], label, place)
    mine = float(ours[label].elements.mean()) if label in ours else math.nan
    return float(printed) if printed.isdecimal() else math.nan, mine


def strength(plan: Layout) -> Figure:
    """Table 2 as curves: the fooling rate against the number of elements, where it is measured."""
    found: dict[str, dict[str, Sample]] = {}
    for title, (model, _) in ROBUST.items():
        for label in CURVES:
            sample = first_of(plan.find(model, "untargeted", label, where=usual_start))
            if sample is not None:
                found.setdefault(title, {})[label] = sample
    count = max(1, len(found))
    figure = Figure(figsize=(2.8 * count, 3.4), dpi=130, layout="constrained")
    panels = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    for axes, (title, each) in zip(panels, found.items(), strict=False):
        samples = on_shared_images(each)
        for label, sample in samples.items():
            _curve(axes, label, sample)
        axes.set_title(f"{title}, n {next(iter(samples.values())).n}", fontsize=10)
        axes.set_xscale("log")
        axes.set_xlabel("elements that may change")
        axes.grid(alpha=0.3, linewidth=0.5)
    panels[0].set_ylabel("fooling rate, %")
    handles = panels[0].get_legend_handles_labels()
    if handles[0]:
        figure.legend(*handles, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    return figure


def _curve(axes: Axes, label: str, sample: Sample) -> None:
    known = np.sort(sample.elements[sample.fooled])
    shares = 100 * np.arange(1, len(known) + 1) / sample.n
    look = CURVES.index(label)
    axes.step(
        known,
        shares,
        where="post",
        color=COLOURS[look],
        linestyle=LINES[look],
        linewidth=1.3,
        label=TITLES[label],
    )


def transfer() -> Figure:
    """The paper's table 3: mean rates over networks that were not attacked."""
    labels = list(published()["table3"]["vgg19"])
    series = {
        f"from {name}": [
            float(np.mean(np.delete(published()["table3"][source][label], white)))
            for label in labels
        ]
        for source, (name, white) in WHITE_BOX.items()
    }
    return _one_panel(labels, series, "the paper's fooling rate of other networks, mean, %")


def speedup() -> Figure:
    """The paper's speed-ups as printed, and both ways to compute them from its table."""
    found = speedups()
    printed, means, ratios = zip(*found.values(), strict=True)
    series = {"printed": printed, "mean of ratios": means, "ratio of sums": ratios}
    return _one_panel(list(found), series, "speed-up over the paper's attack", log=True)


def _one_panel(
    labels: Sequence[str], series: dict[str, Any], what: str, *, log: bool = False
) -> Figure:
    names = ["the paper's attack" if label == "wifgsm" else TITLES[label] for label in labels]
    figure = Figure(figsize=(7.6, 0.27 * len(names) + 1.3), dpi=130, layout="constrained")
    axes = figure.subplots()
    draw_dots(axes, names, series, log=log)
    axes.set_xlabel(what)
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=3, frameon=False)
    return figure


def optima() -> Figure:
    """Elements over the proved fewest, per case and attack."""
    rows = claims.optimum_rows()
    cases = list(dict.fromkeys(map(claims.case_of, rows)))
    attacks = list(dict.fromkeys(map(claims.attack_of, rows)))
    ratios = {(claims.case_of(row), claims.attack_of(row)): claims.over_fewest(row) for row in rows}
    series = {
        attack: [ratios[case, attack] for case in cases]
        for attack in attacks
        if not all(math.isnan(ratios[case, attack]) for case in cases)
    }
    figure = Figure(figsize=(7.6, 2.8), dpi=130, layout="constrained")
    axes = figure.subplots()
    draw_dots(axes, [case.replace("_", " ") for case in cases], series, log=True)
    axes.set_xticks((1, 1.1, 1.2, 1.5, 2, 3, 4))
    axes.minorticks_off()
    axes.set_xlabel("elements over the proved fewest, on fooled images")
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=4, frameon=False)
    return figure


def has_ablations(plan: Layout) -> bool:
    return bool(all_sweeps(plan))


def ablations(plan: Layout) -> Figure:
    """Figure 7: three panels with two axes each, one row per network that has rows."""
    models = list(all_sweeps(plan))
    figure = Figure(figsize=(10.5, 3.1 * len(models)), dpi=130, layout="constrained")
    panels = figure.subplots(len(models), 3, squeeze=False)
    for row, model in zip(panels, models, strict=True):
        for axes, (title, names) in zip(row, PANELS.items(), strict=True):
            _panel(plan, axes, model, title, names)
            axes.set_title(f"{NETWORKS[model]}: {title}", fontsize=9)
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
    axes.set_ylabel("fooled, %", color=_RATE)
    other.set_ylabel("elements of fooled images", color=_COUNT)
    if title == "λ" and any(np.isfinite(line.get_ydata()).any() for line in other.lines):
        other.set_yscale("log")
    axes.set_xlabel(title)
    if axes.lines:
        below = (0.5, -0.2)
        axes.legend(loc="upper center", bbox_to_anchor=below, ncols=2, frameon=False, fontsize=6)
