"""The effects of each group as bars, and the margin as groups are added one by one."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from pinprick.explain.noise.explanation import Explanation, Group
from pinprick.report.group_outlines import LEADING, OBSCURING, legend_marks, mark
from pinprick.report.words import folded

_WIDTH = 0.38  # of a bar; groups are 1 apart
_FEWEST = 5  # groups that there is always room for
_TICK = 0.15  # inches per number under the axis


def effects_figure(
    explanation: Explanation, *, title: str, true_name: str, rival_name: str
) -> Figure:
    """Bars with standard errors on the left, the margin on the right."""
    assert explanation.groups, "nothing changed, so nothing has an effect"
    wide = max(11.4, 2 * (_TICK * len(explanation.groups) + 1))  # room for every number
    figure = Figure(figsize=(wide, 4.8), dpi=150, layout="constrained")
    figure.suptitle(f"{title}\n{_total_and_error(explanation)}", fontsize=10, parse_math=False)
    bars, margins = figure.subplots(1, 2)
    ordered = [explanation.groups[number] for number in explanation.order]
    _draw_bars(bars, ordered, true_name, rival_name, exact=explanation.method == "exact")
    _draw_margins(margins, explanation, ordered, true_name, rival_name)
    return figure


def _draw_bars(
    axes: Axes, groups: Sequence[Group], true_name: str, rival_name: str, *, exact: bool
) -> None:
    places = range(len(groups))
    for side, name, colour, hatch, words in (
        (-1, "obscuring", OBSCURING, "", f"obscuring: {true_name} falls by"),
        (1, "leading", LEADING, "//", f"leading: {rival_name} rises by"),
    ):
        axes.bar(
            [place + side * _WIDTH / 2 for place in places],
            [getattr(group.shapley, name) for group in groups],
            _WIDTH,
            yerr=None if exact else [getattr(group.shapley, f"{name}_error") for group in groups],
            color=colour,
            edgecolor="white",
            hatch=hatch,
            linewidth=0,
            error_kw={"elinewidth": 1, "capsize": 2, "ecolor": "#222222"},
            label=folded(words, 42),
        )
    axes.axhline(0, color="black", linewidth=0.8)
    error = "" if exact else " ± standard error"
    axes.set_title(f"effect of each group (Shapley value{error})", fontsize=10)
    axes.set_ylabel("change of the score (logit minus the mean of all)", fontsize=9)
    axes.set_xlabel("group, the largest effect on the margin first", fontsize=9)
    _ticks(axes, [str(group.number) for group in groups])
    legend = axes.legend(fontsize=8, frameon=False, loc="best")
    for text in legend.get_texts():
        text.set_parse_math(False)
    axes.margins(y=0.12)
    pad = max(0.6, (_FEWEST - len(groups)) / 2)  # bars of a single group do not fill the panel
    axes.set_xlim(-pad, len(groups) - 1 + pad)


def _draw_margins(
    axes: Axes, explanation: Explanation, groups: Sequence[Group], true_name: str, rival_name: str
) -> None:
    margins = [stage.margin for stage in explanation.stages]
    axes.plot(range(len(margins)), margins, color="#555555", linewidth=1.2, zorder=1)
    axes.plot([0], margins[:1], marker="o", color="black", markersize=5, linestyle="none")
    for place, group in enumerate(groups, start=1):
        axes.add_line(mark(group.shapley.label, float(place), margins[place]))
    axes.axhline(0, color="black", linewidth=0.8)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -0.15 * high), high)
    axes.axhspan(axes.get_ylim()[0], 0, color="#888888", alpha=0.12, zorder=0)
    axes.set_title("margin as groups are added one by one", fontsize=10)
    ahead = folded(f"{true_name} ahead of {rival_name} by", 46)
    axes.set_ylabel(f"{ahead} (logits)", fontsize=9, parse_math=False)
    axes.set_xlabel("group added", fontsize=9)
    _ticks(axes, ["clean", *(f"+{group.number}" for group in groups)])
    marks, kinds = legend_marks({group.shapley.label for group in groups})
    axes.legend(marks, kinds, fontsize=8, frameon=False)


def _ticks(axes: Axes, words: Sequence[str]) -> None:
    """One word under each position."""
    axes.xaxis.set_major_locator(FixedLocator(range(len(words))))
    crowded = len(words) > 14
    axes.set_xticklabels(words, fontsize=7 if crowded else 9, rotation=90 if crowded else 0)


def _total_and_error(explanation: Explanation) -> str:
    """The total change of the margin, and how exact the effects are."""
    obscuring, leading = explanation.obscuring, explanation.leading
    total = f"margin moved by {explanation.margin:.2f}: {obscuring:.2f} obscuring, {leading:.2f}"
    if explanation.method == "exact":
        return f"{total} leading; exact, from all coalitions of groups"
    error = f"standard errors up to {100 * explanation.largest_error:.1f} % of that"
    return f"{total} leading; from {explanation.pairs} pairs of random orders, {error}"
