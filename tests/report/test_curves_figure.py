"""Curves of robust accuracy as they are drawn."""

import math
from pathlib import Path

import numpy as np
import pytest
from attacked_images import attacked
from matplotlib.axes import Axes
from PIL import Image

from pinprick import plot_curves
from pinprick.report.png import save_figure


def drawn(axes: Axes, number: int = 0) -> list[tuple[float, float]]:
    line = axes.lines[number]
    xs, ys = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    return list(zip(xs.tolist(), ys.tolist(), strict=True))


def test_a_curve_is_the_step_function_to_a_bit_beyond_the_last_step() -> None:
    figure = plot_curves(attacked(2, 2, 10, math.inf))
    (axes,) = figure.axes
    assert drawn(axes) == [(0, 1.0), (2, 0.5), (10, 0.25), (11, 0.25)]
    assert axes.lines[0].get_drawstyle() == "steps-post"
    assert axes.get_xlabel() == "pixels that may change"


def test_seeds_are_averaged_and_attacks_told_apart() -> None:
    seeds = [attacked(1, 3), attacked(3, 3, seed=1)]
    (axes,) = plot_curves({"$a": seeds, "b": attacked(2, 2)}, "elements").axes
    assert drawn(axes)[:4] == [(0, 1.0), (1, 0.75), (2, 0.75), (3, 0.0)]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["$a", "b"]
    assert axes.get_xlabel() == "elements that may change"


def test_nothing_fooled_is_a_level_line(tmp_path: Path) -> None:
    figure = plot_curves(attacked(math.inf))
    save_figure(figure, tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as picture:
        assert min(picture.size) > 300
    assert drawn(figure.axes[0]) == [(0, 1.0), (1, 1.0)]


def test_wide_ranges_get_a_logarithmic_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plot_curves(attacked(1, 18)).axes[0].get_xscale() == "linear"
    monkeypatch.setattr("pinprick.report.curves_figure._WIDE", 10)
    assert plot_curves(attacked(1, 18)).axes[0].get_xscale() == "symlog"
