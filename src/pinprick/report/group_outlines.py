"""How groups of changed pixels look in figures: the colour and mark of each kind, and outlines.

A kind has a colour and a shape, so that either is enough to recognise it. Outlines run along the
edges of pixels and keep off changed pixels where pixels are small.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from pinprick.explain.noise.explanation import Group
from pinprick.explain.noise.labels import LABELS

Segments = NDArray[np.float64]  # (segments, 2 ends, 2 coordinates), columns first

OBSCURING, LEADING = "#d01414", "#00b38f"  # distinct also with red-green blindness
_FINE = 100  # pixels per side of an image whose outlines lie one pixel away from changed pixels
_CROWDED = 150  # changed pixels above which outlines are thinner and nearer
_DENSE = 1500  # changed pixels above which outlines lie on the edges of pixels
LINE, HALO = 1.0, 2.2  # widths in points, of the line and of the white under it


@dataclass(frozen=True)
class Look:
    """A colour, and the shape of a mark under matplotlib's name."""

    colour: str
    marker: str


LOOKS = {
    "obscuring": Look(OBSCURING, "s"),
    "leading": Look(LEADING, "o"),
    "mixed": Look("#ffb000", "D"),
    "inert": Look("#5f5f5f", "v"),
    "counter-productive": Look("#d58cff", "^"),
    "undecided": Look("#0048d0", "p"),
}
_SIZES = {"s": 6.0, "o": 6.6, "D": 5.2, "v": 7.0, "^": 7.0, "p": 7.4}  # they look equally large


def mark(kind: str, column: float | None = None, row: float | None = None) -> Line2D:
    """The mark of a kind, filled and with a white edge, at a pixel or for a legend."""
    look = LOOKS[kind]
    return Line2D(
        [] if column is None else [column],
        [] if row is None else [row],
        marker=look.marker,
        markersize=_SIZES[look.marker],
        markerfacecolor=look.colour,
        markeredgecolor="white",
        markeredgewidth=0.8,
        linestyle="none",
        clip_on=False,
        zorder=6,
    )


def legend_marks(kinds: set[str]) -> tuple[list[Line2D], list[str]]:
    """One mark per kind that occurs, and its name, in the order of ``LABELS``."""
    there = [kind for kind in LABELS if kind in kinds]
    return [mark(kind) for kind in there], there


def reach(groups: Sequence[Group], height: int, width: int) -> int:
    """Pixels between a changed pixel and its outline, so that the line hides none."""
    pixels, far = _count(groups), round(min(height, width) / _FINE)
    return 0 if pixels > _DENSE else min(far, 1) if crowded(groups) else far


def outline(group: Group, far: int, height: int, width: int) -> Segments:
    """The edge of all pixels within ``far`` of the group, clipped to the image."""
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
    """All outlines in the colours of their kinds, over white, without changing the limits."""
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
