"""An image in a panel, and the change between two images drawn so that it can be seen.

Few changed pixels are drawn as enlarged squares in their new colours over a pale grey copy of the
image; up to 30 of them get a ring each. If more than 5 % of the pixels changed, the difference
itself is drawn, scaled to full range around grey.
"""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Circle, Rectangle

from pinprick.types import Picture

_DENSE = 0.05  # share of changed pixels from which the difference itself is drawn
_INK = 0.06  # share of the area that enlarged pixels may cover
_RINGED = 30  # pixels up to which each gets a ring
_RING = "#d1001f"


def draw_picture(axes: Axes, picture: Picture) -> None:
    """The image as it is, pixel for pixel."""
    pixels = picture.detach().cpu().float().permute(1, 2, 0).numpy()
    pixels = np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels[:, :, :3]
    axes.imshow(pixels, interpolation="nearest", vmin=0, vmax=1)
    _bare(axes)


def write_around(axes: Axes, above: str, below: str, *, size: int = 9) -> None:
    """Text over and under a panel, taken literally: a class may be called "$"."""
    axes.set_title(above, fontsize=size, parse_math=False)
    axes.set_xlabel(below, fontsize=size, parse_math=False)


def draw_changes(axes: Axes, clean: Picture, adv: Picture) -> str:
    """Draw the change from ``clean`` to ``adv``; returns a line that says how it was drawn."""
    changed = (clean != adv).any(dim=0).cpu()
    if changed.sum() > _DENSE * changed.numel():
        return _draw_difference(axes, clean, adv)
    places: list[list[int]] = changed.nonzero().tolist()
    grey = clean.detach().cpu().float().mean(dim=0, keepdim=True)
    draw_picture(axes, 0.72 + 0.28 * grey)
    if not places:
        return "nothing changed"
    side = _side(len(places), changed.numel(), min(changed.shape))
    squares = [Rectangle((column - side / 2, row - side / 2), side, side) for row, column in places]
    colours = [_colour(adv, row, column) for row, column in places]
    _add(axes, squares, facecolors=colours, edgecolors="black", linewidths=0.5)
    if len(places) <= _RINGED:
        rings = [Circle((column, row), 1.2 * side) for row, column in places]
        _add(axes, rings, facecolors="none", edgecolors=_RING, linewidths=1.2)
    return f"changed pixels, {side:.0f} times as wide"


def _draw_difference(axes: Axes, clean: Picture, adv: Picture) -> str:
    delta = (adv - clean).detach().cpu().float()
    gain = 0.5 / float(delta.abs().max())
    draw_picture(axes, (0.5 + gain * delta).clamp(0, 1))
    return f"change, {float(f'{gain:.3g}'):g} times as strong"


def _add(axes: Axes, shapes: list[Rectangle] | list[Circle], **style: Any) -> None:
    """Draw shapes over the image without changing the limits of the panel."""
    axes.add_collection(PatchCollection(shapes, **style), autolim=False)


def _side(count: int, area: int, short_side: int) -> float:
    """Width of an enlarged pixel: wider if there are few, so that even one is seen."""
    return max(2.0, min(math.sqrt(_INK * area / count), short_side / 27))


def _colour(adv: Picture, row: int, column: int) -> tuple[float, float, float]:
    values = [float(value) for value in adv[:, row, column]]
    red, green, blue = values * 3 if len(values) == 1 else values[:3]
    return red, green, blue


def _bare(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_linewidth(0.4)
