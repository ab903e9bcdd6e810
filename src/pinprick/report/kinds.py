"""How each kind of noise looks in a figure: a colour and a shape, either of which will do."""

from dataclasses import dataclass

from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Polygon, Rectangle

from pinprick.explain.labels import LABELS

OBSCURING, LEADING = "#e4002b", "#00b140"


@dataclass(frozen=True)
class Look:
    """A colour, and the shape of a mark as matplotlib names it."""

    colour: str
    marker: str


LOOKS = {
    "obscuring": Look(OBSCURING, "s"),
    "leading": Look(LEADING, "o"),
    "mixed": Look("#ffa400", "D"),
    "inert": Look("#8a8a8a", "v"),
    "counter-productive": Look("#9b30ff", "^"),
    "undecided": Look("#00a3e0", "p"),
}
_CORNERS = {  # of the shapes that are no circle and no square; right and down, from the centre
    "D": ((0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)),
    "v": ((-1.1, -0.8), (1.1, -0.8), (0.0, 1.2)),
    "^": ((-1.1, 0.8), (1.1, 0.8), (0.0, -1.2)),
    "p": ((0.0, -1.15), (1.1, -0.35), (0.7, 0.95), (-0.7, 0.95), (-1.1, -0.35)),
}


def shape(kind: str, row: float, column: float, radius: float) -> Circle | Polygon | Rectangle:
    """The mark of a kind around a place, in pixels of the image."""
    marker = LOOKS[kind].marker
    if marker == "o":
        return Circle((column, row), radius)
    if marker == "s":
        side = 1.8 * radius  # as large as the circle to the eye
        return Rectangle((column - side / 2, row - side / 2), side, side)
    corners = [(column + radius * right, row + radius * down) for right, down in _CORNERS[marker]]
    return Polygon(corners, closed=True)


def legend_marks(kinds: set[str]) -> list[Line2D]:
    """One entry for each kind that occurs, in the order of the rule."""
    return [
        Line2D(
            [],
            [],
            marker=LOOKS[kind].marker,
            markersize=8,
            markerfacecolor="none",
            markeredgecolor=LOOKS[kind].colour,
            markeredgewidth=2,
            linestyle="none",
            label=kind,
        )
        for kind in LABELS
        if kind in kinds
    ]
