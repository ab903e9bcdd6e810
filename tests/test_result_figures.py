"""The figures of the pages of results: what stands beside what, and how series look."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from generators.dot_plot import draw_dots
from generators.speed import figure
from generators.speed.figure import speed_figure
from generators.speed.rows import at_several_speeds, runs

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
    seconds = np.asarray(axes.lines[-1].get_xdata(), dtype=float).tolist()
    ours = [by_speed["exact"] for by_speed in at_several_speeds()]
    beside = []
    for name, public, row in zip(names, seconds, ours, strict=True):
        run = runs()[row["process"], row["model"], row["images"]]
        theirs = [run[text][""] for text in run if text.startswith("advlib_sigma_zero")]
        is_beside = any(row["elements"] <= one["elements"] for one in theirs)
        if row["attack"].startswith("pinprick"):
            assert ("beside σ-zero" in name) == is_beside == (not math.isnan(public))
            beside.append(is_beside)
    assert any(beside)


def test_pinprick_that_finds_more_elements_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"process": "one", "model": "efficientnet_lite0", "images": 1, "wall": 1.0}
    ours = row | {"attack": "pinprick,effort=fast", "elements": 9.0}
    theirs = row | {"attack": "advlib_sigma_zero,steps=9", "elements": 8.0}
    run = {one["attack"]: {speed: one} for one, speed in ((ours, "exact"), (theirs, ""))}
    monkeypatch.setattr(figure, "runs", lambda: {("one", "efficientnet_lite0", 1): run})
    assert figure._peer(ours) is None
    assert figure._peer(ours | {"elements": 8.0}) == theirs
