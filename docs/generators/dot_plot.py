"""Dots in rows: one row per name, one marker per series."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from pinprick.report.series_looks import COLOURS, MARKERS


def draw_dots(
    axes: Axes, names: Sequence[str], series: Mapping[str, Sequence[float]], *, log: bool = False
) -> None:
    """Draw every series over the rows, from top to bottom.

    Args:
        axes: Where to draw.
        names: Labels of the rows.
        series: By label of the legend, one value per row; NaN where there is none.
        log: Whether the axis of values is logarithmic.
    """
    for number, (label, values) in enumerate(series.items()):
        axes.plot(
            values,
            range(len(names)),
            MARKERS[number],
            color=COLOURS[number],
            markersize=8 - 1.2 * number,  # so that none hides another
            alpha=0.9,
            label=label,
        )
    axes.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3, linewidth=0.5)
