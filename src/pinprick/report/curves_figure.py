"""Robust accuracy against the number of changed units: one curve per attack."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pinprick.metrics.unit import Unit, check_unit
from pinprick.metrics.wilson import wilson_interval
from pinprick.result import AttackResult
from pinprick.results_by_name import Results, by_name

_WIDE = 100  # budgets from which the axis is logarithmic
_DASHES = ("-", "--", "-.", ":")


def plot_curves(results: Results, unit: Unit = "pixels") -> Figure:
    """Draw robust accuracy against the number of units that may change, per attack.

    The band is the 95 % Wilson interval at each budget. Of several seeds the mean is drawn.
    ``figure.savefig("curves.png")`` writes the figure.

    Args:
        results: As for ``summarise``.
        unit: Whether "pixels" or "elements" are counted.
    """
    check_unit(unit)
    named = by_name(results)
    figure = Figure(figsize=(6.4, 4.2), dpi=150, layout="constrained")
    axes = figure.subplots()
    budgets = sorted({0}.union(*(_steps(run, unit) for runs in named.values() for run in runs)))
    end = max(1, round(1.1 * budgets[-1]))
    for number, (name, runs) in enumerate(named.items()):
        _draw(axes, name, runs, [*budgets, end], unit, number)
    if end > _WIDE:
        axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(0, end)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(f"{unit} that may change")
    axes.set_ylabel("robust accuracy")
    axes.grid(alpha=0.3, linewidth=0.5)
    legend = axes.legend(frameon=False, fontsize=9)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _steps(run: AttackResult, unit: Unit) -> set[int]:
    return {budget for budget, _ in run.robust_accuracy_curve(unit)}


def _draw(
    axes: Axes,
    name: str,
    runs: Sequence[AttackResult],
    budgets: Sequence[int],
    unit: Unit,
    number: int,
) -> None:
    shares = np.mean([run.robust_accuracy(budgets, unit) for run in runs], axis=0)
    n = len(runs[0])
    low, high = zip(*(wilson_interval(float(share) * n, n) for share in shares), strict=True)
    dashes = _DASHES[number // 10 % len(_DASHES)]  # colours repeat after ten
    (line,) = axes.step(budgets, shares, where="post", label=name, linestyle=dashes)
    axes.fill_between(budgets, low, high, step="post", alpha=0.15, color=line.get_color(), lw=0)
