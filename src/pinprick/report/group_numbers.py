"""Groups on a picture: the outline of each, and beside it the mark of its kind and its number.

Numbers stand beside the changed pixels, not over them. A thin line leads from a number to its
group, and joins the parts of a group.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from pinprick.explain.noise.explanation import Group
from pinprick.report.group_outlines import HALO, LINE, LOOKS, crowded, draw_outlines, mark, reach

_PANEL = 205  # points that the longer side of a picture takes up in the figure
_MARK, _DIGIT, _HIGH = 7.5, 5.4, 9.5  # points: width of a mark and of a digit, height of both
_THIN = 0.6  # points of a line where there are many
_AVOIDED = 400  # changed pixels up to which numbers avoid each, and parts are joined
_DIRECTIONS = 24  # that are tried for a number
_DISTANCES = 14  # that are tried for a number


def draw_marks(axes: Axes, groups: Sequence[Group], shape: tuple[int, int]) -> None:
    """The outlines of all groups over a map of ``shape`` rows and columns."""
    line, halo = (_THIN, 0.0) if crowded(groups) else (LINE, HALO)
    draw_outlines(axes, groups, reach(groups, *shape), *shape, line=line, halo=halo)


def number_marks(axes: Axes, groups: Sequence[Group], shape: tuple[int, int]) -> list[int]:
    """Outlines, marks and numbers over a picture; returns the numbers that found no room."""
    line, halo = (_THIN, 2 * _THIN) if crowded(groups) else (LINE, HALO)
    draw_outlines(axes, groups, reach(groups, *shape), *shape, line=line, halo=halo)
    height, width = shape
    point = max(shape) / _PANEL  # pixels of the image
    far = reach(groups, height, width) + 0.5
    ordered = sorted(groups, key=effect_of, reverse=True)
    anchors = [anchor_of(group) for group in ordered]
    sizes = [
        (point * (_MARK + _DIGIT * len(str(group.number))), point * _HIGH) for group in ordered
    ]
    pixels = [pixel for group in groups for pixel in group.pixels]
    joined = len(pixels) <= _AVOIDED
    spots = [(float(column), float(row)) for row, column in pixels] if joined else anchors
    avoided = [box_around(*spot, 2 * far, 2 * far) for spot in spots]
    limits = Box(-0.5, -0.5, width - 0.5, height - 0.5)
    places = place_labels(anchors, sizes, avoided, limits)
    for group, anchor, size, place in zip(ordered, anchors, sizes, places, strict=True):
        if joined:
            _join_parts(axes, group, far)
        if place is not None:
            _label(axes, group, anchor, size, place, far, point)
    return sorted(
        group.number for group, place in zip(ordered, places, strict=True) if place is None
    )


def effect_of(group: Group) -> float:
    """The larger magnitude of its two effects."""
    return max(abs(group.shapley.obscuring), abs(group.shapley.leading))


def anchor_of(group: Group) -> tuple[float, float]:
    """Column and row of its changed pixel that is nearest to its centre."""
    row, column = min(
        group.pixels,
        key=lambda pixel: (
            (pixel[0] - group.centre[0]) ** 2 + (pixel[1] - group.centre[1]) ** 2,
            pixel,
        ),
    )
    return float(column), float(row)


def _label(
    axes: Axes,
    group: Group,
    anchor: tuple[float, float],
    size: tuple[float, float],
    place: tuple[float, float],
    far: float,
    point: float,
) -> None:
    kind, left = group.shapley.label, place[0] - size[0] / 2
    _line(axes, group, _on_edge(anchor, place, (2 * far, 2 * far)), _on_edge(place, anchor, size))
    axes.add_line(mark(kind, left + 0.45 * _MARK * point, place[1]))
    axes.text(
        left + _MARK * point,
        place[1],
        str(group.number),
        ha="left",
        va="center_baseline",
        fontsize=8,
        fontweight="bold",
        color="black",
        zorder=7,
        path_effects=[withStroke(linewidth=2.2, foreground="white")],
    )


def _join_parts(axes: Axes, group: Group, far: float) -> None:
    """Thin lines that join the parts of a group, each to the nearest pixel joined so far."""
    joined, rest = [anchor_of(group)], {(float(column), float(row)) for row, column in group.pixels}
    rest.discard(joined[0])
    while rest:
        first, second = min(
            ((one, other) for one in joined for other in rest),
            key=lambda pair: (math.dist(*pair), pair),
        )
        if max(abs(first[0] - second[0]), abs(first[1] - second[1])) > 2 * far:
            box = (2 * far, 2 * far)
            _line(axes, group, _on_edge(first, second, box), _on_edge(second, first, box))
        joined.append(second)
        rest.discard(second)


def _line(axes: Axes, group: Group, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.plot(
        [start[0], end[0]],
        [start[1], end[1]],
        color=LOOKS[group.shapley.label].colour,
        linewidth=0.8,
        zorder=5,
        path_effects=[withStroke(linewidth=1.8, foreground="white")],
        scalex=False,
        scaley=False,
    )


def _on_edge(
    centre: tuple[float, float], towards: tuple[float, float], size: tuple[float, float]
) -> tuple[float, float]:
    """Where the line from the centre of a box to another point leaves the box."""
    across, down = towards[0] - centre[0], towards[1] - centre[1]
    scale = max(abs(across) / (size[0] / 2), abs(down) / (size[1] / 2), 1.0)
    return centre[0] + across / scale, centre[1] + down / scale


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels of the image."""

    left: float
    top: float
    right: float
    bottom: float

    def shared(self, other: "Box") -> float:
        """The area that both cover."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(wide, 0.0) * max(high, 0.0)

    def within(self, other: "Box") -> bool:
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


def box_around(column: float, row: float, wide: float, high: float) -> Box:
    return Box(column - wide / 2, row - high / 2, column + wide / 2, row + high / 2)


def place_labels(
    anchors: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    avoided: Sequence[Box],
    limits: Box,
) -> list[tuple[float, float] | None]:
    """Column and row of the centre of each label; None where there is no room for it.

    Labels are placed in the given order. A label lies within ``limits`` and covers no other label.
    It is placed near its anchor and covers as little as possible of what is ``avoided``.

    Args:
        anchors: Column and row of the pixel that each label belongs to.
        sizes: Width and height of each label.
        avoided: Boxes that labels should not cover.
        limits: The box that labels must lie in.
    """
    taken: list[Box] = []
    places: list[tuple[float, float] | None] = []
    for (column, row), (wide, high) in zip(anchors, sizes, strict=True):
        best, least = None, math.inf
        for ring in range(_DISTANCES):
            far = 0.5 + 0.3 * ring
            if far * high > least:  # nothing farther away is better
                break
            for turn in range(_DIRECTIONS):
                angle = 2 * math.pi * turn / _DIRECTIONS
                at = (
                    column + math.cos(angle) * (wide / 2 + far * high),
                    row + math.sin(angle) * (high / 2 + far * high),
                )
                box = box_around(*at, wide, high)
                if not box.within(limits) or any(box.shared(other) for other in taken):
                    continue
                covered = sum(box.shared(other) for other in avoided) / (wide * high)
                cost = far * high + 6 * high * covered
                if cost < least:
                    best, least = at, cost
        places.append(best)
        if best is not None:
            taken.append(box_around(*best, wide, high))
    return places
