"""Places for the numbers of groups: beside what they name, over no other number, in the picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_TURNS = 24  # directions that are tried
_RINGS = 14  # distances that are tried


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
    """The centre of each label, column first; None where there is no room left for one.

    Labels that come first choose first. A label lies within ``limits`` and covers no other label;
    it is as near to its anchor as it can be, and covers as little as it can of what is ``avoided``.

    Args:
        anchors: Column and row that each label belongs to.
        sizes: Width and height of each label.
        avoided: What labels should not cover.
        limits: Where labels may lie.
    """
    taken: list[Box] = []
    places: list[tuple[float, float] | None] = []
    for (column, row), (wide, high) in zip(anchors, sizes, strict=True):
        best, least = None, math.inf
        for ring in range(_RINGS):
            far = 0.5 + 0.3 * ring
            if far * high > least:  # nothing farther away is better
                break
            for turn in range(_TURNS):
                angle = 2 * math.pi * turn / _TURNS
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
