"""The largest groups from near, before and after, so that their changed pixels can be seen."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure

from pinprick.explain.noise.explanation import Group
from pinprick.report.changes import draw_picture
from pinprick.report.marks import anchor_of, effect_of
from pinprick.report.outlines import HALO, LINE, LOOKS, draw_outlines
from pinprick.report.words import signed
from pinprick.types import Picture

MOST = 8  # groups that are shown
_LEAST, _LARGEST = 11, 41  # pixels of a side
_NEAR = 17  # pixels of a side up to which outlines have white around them


def shown_groups(groups: Sequence[Group]) -> list[Group]:
    """Those with the largest effects, the largest first."""
    return sorted(groups, key=effect_of, reverse=True)[:MOST]


def draw_crops(
    figure: SubFigure, groups: Sequence[Group], clean: Picture, adversarial: Picture
) -> None:
    """A column for each group: its number and kind, before, after, and its two effects."""
    shown = shown_groups(groups)
    panels = figure.subplots(2, MOST, squeeze=False)
    for column in range(MOST):
        above, below = panels[:, column]
        if column >= len(shown):
            above.set_axis_off()
            below.set_axis_off()
            continue
        group = shown[column]
        for axes, picture in ((above, clean), (below, adversarial)):
            _draw(axes, group, picture)
        effect, look = group.shapley, LOOKS[group.shapley.label]
        above.set_title(f"{group.number} {effect.label}", fontsize=8, color="black")
        for axes in (above, below):
            for spine in axes.spines.values():
                spine.set(linewidth=1.2, color=look.colour)
        below.set_xlabel(
            f"obscuring {signed(effect.obscuring)}\nleading {signed(effect.leading)}", fontsize=7.5
        )
    panels[0, 0].set_ylabel("before", fontsize=9)
    panels[1, 0].set_ylabel("after", fontsize=9)


def _draw(axes: Axes, group: Group, picture: Picture) -> None:
    """The picture, of which the panel shows the part around the group."""
    height, width = picture.shape[1:]
    draw_picture(axes, picture)
    (left, right), (top, bottom) = crop_of(group, height, width)
    near = right - left <= _NEAR
    line, halo = (LINE, HALO) if near else (LINE / 2, 0.0)  # so that no pixel is hidden
    draw_outlines(axes, [group], 0, height, width, line=line, halo=halo)
    for lines in axes.collections:
        lines.set_clip_on(True)  # a group may be larger than its crop
    axes.set_xlim(left - 0.5, right - 0.5)
    axes.set_ylim(bottom - 0.5, top - 0.5)


def crop_of(group: Group, height: int, width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """First and last-plus-one column, and row, of a square around the group within the image."""
    top, left, bottom, right = group.box
    column, row = anchor_of(group)
    high, wide = bottom - top + 1, right - left + 1
    side = int(np.clip(max(high, wide) + 6, _LEAST, _LARGEST))
    side = min(side, height, width)
    middle = (
        ((left + right + 1) / 2, (top + bottom + 1) / 2)
        if max(high, wide) <= side
        else (column + 0.5, row + 0.5)
    )
    starts = [
        int(np.clip(round(centre - side / 2), 0, most - side))
        for centre, most in zip(middle, (width, height), strict=True)
    ]
    return (starts[0], starts[0] + side), (starts[1], starts[1] + side)
