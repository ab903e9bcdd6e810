"""Marks on a picture: where each group of changed pixels lies, what kind it is, how much it does.

A group has one mark at its centre, whose area goes with its larger effect; every changed pixel has
a thin frame in the colour of its group, unless they are very many.
"""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke

from pinprick.explain.explanation import Group
from pinprick.report.kinds import LOOKS, shape

_FRAMED = 400  # changed pixels up to which each has its frame
_NUMBERED = 12  # groups up to which each has its number
_LARGEST = 1 / 17  # of the shorter side: radius of the largest mark
_SMALLEST = 0.35  # of the largest radius
_FRAME = 1 / 75  # of the shorter side: width of the frame around a pixel, if that is wider
_HALO = 1.6  # points of white on either side of a line


def draw_marks(axes: Axes, groups: Sequence[Group], side: int, *, numbers: bool = False) -> None:
    """The marks of all groups over an image whose shorter side is ``side`` pixels."""
    pixels = sum(len(group.pixels) for group in groups)
    for group in groups if pixels <= _FRAMED else ():
        wide = max(1.0, _FRAME * side)
        frames = [
            Rectangle((column - wide / 2, row - wide / 2), wide, wide)
            for row, column in group.pixels
        ]
        _outline(axes, frames, LOOKS[group.shapley.label].colour, width=0.7)
    largest = max((effect_of(group) for group in groups), default=0.0)
    for group in groups:
        radius = mark_radius(effect_of(group), largest, side)
        kind = group.shapley.label
        _outline(axes, [shape(kind, *group.centre, radius)], LOOKS[kind].colour, width=1.7)
        if numbers and len(groups) <= _NUMBERED:
            _number(axes, group, groups, 1.3 * radius + 0.02 * side)


def effect_of(group: Group) -> float:
    """The larger of its two effects, whatever its sign; what the size of its mark shows."""
    return max(abs(group.shapley.obscuring), abs(group.shapley.leading))


def mark_radius(effect: float, largest: float, side: int) -> float:
    """In pixels of the image; the area goes with the effect, but every mark can be seen."""
    share = math.sqrt(effect / largest) if largest > 0 else 0.0
    return _LARGEST * side * max(share, _SMALLEST)


def _outline(axes: Axes, shapes: Sequence[Patch], colour: str, *, width: float) -> None:
    """Lines with a white rim, which are seen on any ground; the image alone sets the limits."""
    lines = PatchCollection(
        shapes,
        facecolors="none",
        edgecolors=colour,
        linewidths=width,
        path_effects=[withStroke(linewidth=width + _HALO, foreground="white", alpha=0.8)],
    )
    axes.add_collection(lines, autolim=False)


def _number(axes: Axes, group: Group, groups: Sequence[Group], far: float) -> None:
    """The number of a group beside its mark, away from the other marks and from the edges."""
    row, column = group.centre
    left, right = axes.get_xlim()
    bottom, top = axes.get_ylim()
    mirrored = [(2 * edge - row, column) for edge in (top, bottom)]
    mirrored += [(row, 2 * edge - column) for edge in (left, right)]
    down = beside = 0.0
    for other in (*mirrored, *(one.centre for one in groups)):
        gap = row - other[0], column - other[1]
        near = max(math.hypot(*gap), 1.0) ** 3
        down, beside = down + gap[0] / near, beside + gap[1] / near
    length = max(math.hypot(down, beside), 1e-12)
    axes.text(
        min(max(column + far * beside / length, left + far / 2), right - far / 2),
        min(max(row + far * down / length, top + far / 2), bottom - far / 2),
        str(group.number),
        ha="center",
        va="center",
        fontsize=8,
        color="black",
        path_effects=[withStroke(linewidth=2.2, foreground="white")],
    )
