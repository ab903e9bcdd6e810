"""How each kind of noise looks in a figure: a colour and a shape, either of which will do."""

from dataclasses import dataclass

from matplotlib.lines import Line2D

from pinprick.explain.labels import LABELS

OBSCURING, LEADING = "#d01414", "#00b38f"  # red and green that red-green blindness tells apart


@dataclass(frozen=True)
class Look:
    """A colour, and the shape of a mark as matplotlib names it."""

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
_SIZES = {"s": 6.0, "o": 6.6, "D": 5.2, "v": 7.0, "^": 7.0, "p": 7.4}  # as large to the eye


def mark(kind: str, column: float | None = None, row: float | None = None) -> Line2D:
    """The mark of a kind, filled and with a white edge, at a place of an image or in a legend."""
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
    """One mark for each kind that occurs, and its name, in the order of the rule."""
    there = [kind for kind in LABELS if kind in kinds]
    return [mark(kind) for kind in there], there
