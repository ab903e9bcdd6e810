"""The figures of the pages of results: what stands beside what, and how series look."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from generators.dot_plot import draw_dots
from generators.speed.figure import speed_figure
from generators.speed.rows import at_several_speeds

pytestmark = pytest.mark.plain


def test_series_differ_in_colour_and_in_marker() -> None:
    axes = Figure().subplots()
    draw_dots(axes, ["a", "b"], {name: [1.0, math.nan] for name in "wxyz"})
    looks = [(line.get_color(), line.get_marker()) for line in axes.lines]
    for column in zip(*looks, strict=True):
        assert len(set(column)) == 4
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]


def test_pinprick_stands_beside_sigma_zero_where_it_finds_no_more_elements() -> None:
    (axes,) = speed_figure().axes
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert len(names) == len(at_several_speeds())
    seconds = np.asarray(axes.lines[-1].get_xdata(), dtype=float).tolist()
    public = dict(zip(names, seconds, strict=True))
    assert math.isnan(public["ResNet-18, 32 px: Pinprick, fast"])
    beside = [name for name in names if "beside σ-zero" in name]
    assert len(beside) == 2
    assert not any(math.isnan(public[name]) for name in beside)
