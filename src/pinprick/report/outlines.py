"""The outlines of groups of changed pixels, along the edges of the pixels."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from pinprick.explain.explanation import Group
from pinprick.report.kinds import LOOKS

Segments = NDArray[np.float64]  # (segments, 2 ends, 2 coordinates), columns first

_FINE = 100  # a side of so many pixels has outlines one pixel away from the changed ones
_CROWDED = 150  # changed pixels above which outlines are thinner and nearer
_DENSE = 1500  # changed pixels above which outlines lie on the edges of pixels
LINE, HALO = 1.0, 2.2  # widths in points, of the line and of the white below it


def reach(groups: Sequence[Group], height: int, width: int) -> int:
    """How many pixels lie between a changed pixel and its outline, so that the line hides none."""
    pixels, far = _count(groups), round(min(height, width) / _FINE)
    return 0 if pixels > _DENSE else min(far, 1) if crowded(groups) else far


def outline(group: Group, far: int, height: int, width: int) -> Segments:
    """The edge of all pixels within ``far`` of the group's, cut off at the edge of the image."""
    inside = np.zeros((height + 2, width + 2), dtype=bool)  # with a rim outside the image
    for row, column in group.pixels:
        inside[
            max(row - far, 0) + 1 : min(row + far, height - 1) + 2,
            max(column - far, 0) + 1 : min(column + far, width - 1) + 2,
        ] = True
    rows, columns = np.nonzero(inside[1:] != inside[:-1])  # between a row and the next
    across = np.stack([columns - 1.5, rows - 0.5, columns - 0.5, rows - 0.5], axis=1)
    rows, columns = np.nonzero(inside[:, 1:] != inside[:, :-1])
    down = np.stack([columns - 0.5, rows - 1.5, columns - 0.5, rows - 0.5], axis=1)
    segments: Segments = np.concatenate([across, down]).reshape(-1, 2, 2)
    return segments


def draw_outlines(
    axes: Axes,
    groups: Sequence[Group],
    far: int,
    height: int,
    width: int,
    *,
    line: float = LINE,
    halo: float = HALO,
) -> None:
    """All outlines in the colours of their kinds, over white; the image alone sets the limits."""
    lines = [outline(group, far, height, width) for group in groups]
    for segments in lines if halo else ():
        _add(axes, segments, "white", halo, 3)
    for group, segments in zip(groups, lines, strict=True):
        _add(axes, segments, LOOKS[group.shapley.label].colour, line, 4)


def crowded(groups: Sequence[Group]) -> bool:
    """Whether outlines with white around them would hide much of a map."""
    return _count(groups) > _CROWDED


def _count(groups: Sequence[Group]) -> int:
    return sum(len(group.pixels) for group in groups)


def _add(axes: Axes, segments: Segments, colour: str, width: float, order: int) -> None:
    lines = LineCollection(
        list(segments),
        colors=colour,
        linewidths=width,
        capstyle="projecting",
        zorder=order,
        clip_on=False,
    )
    axes.add_collection(lines, autolim=False)
