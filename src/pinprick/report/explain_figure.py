"""One explained image as a figure: both images with maps of their classes, and the largest groups.

The upper row shows the clean image, with maps for the true class. The lower row shows the
adversarial image, with maps for its new class and the groups of changed pixels numbered. Every map
has the outlines of the groups. Below the rows, the groups with the largest effects are enlarged,
before and after.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from pinprick.explain.noise.explanation import Explanation, Group
from pinprick.report.drawing import draw_picture, write_around
from pinprick.report.group_numbers import anchor_of, draw_marks, effect_of, number_marks
from pinprick.report.group_outlines import (
    HALO,
    LINE,
    LOOKS,
    draw_outlines,
    legend_marks,
    reach,
)
from pinprick.report.map_drawing import Plane, draw_guided, draw_heat, draw_words
from pinprick.report.row import Row
from pinprick.report.words import folded, outcome_words, prediction_below, signed
from pinprick.types import Picture

_CAVEAT = "Guided maps show edges and hardly depend on the class: no evidence of causes."
_PANELS, _CROPS = 8.2, 3.5  # inches of height
_MOST_CROPS = 8
_LEAST_SIDE, _LARGEST_SIDE = 11, 41  # pixels per side of a crop
_NEAR = 17  # pixels per side up to which outlines have white around them


@dataclass(frozen=True, eq=False, kw_only=True)
class Views:
    """An image with its maps for one class.

    Attributes:
        picture: The image.
        class_name: The class that the maps are for.
        method: "Grad-CAM" or "LayerCAM".
        heat: The map of the class; None without maps.
        guided: The map times the guided gradient; None if there is none.
        why_not: Why there is no guided map, if so.
    """

    picture: Picture
    class_name: str
    method: str
    heat: Plane | None
    guided: Picture | None
    why_not: str = ""


def explain_figure(
    row: Row, explanation: Explanation, clean: Views, adversarial: Views, *, title: str
) -> Figure:
    """Six panels with outlines, their legend, and the largest groups enlarged."""
    crops = _CROPS if explanation.groups else 0.0
    room = ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.05, hspace=0.03)
    figure = Figure(figsize=(10.8, _PANELS + crops), dpi=150, layout=room)
    figure.suptitle(f"{title}\n{_headline(row, explanation)}", fontsize=11, parse_math=False)
    if not explanation.groups:
        whole = figure.add_subfigure(figure.add_gridspec(1, 1)[0])
        _draw_panels(whole, row, explanation, clean, adversarial)
        return figure
    grid = figure.add_gridspec(2, 1, height_ratios=(_PANELS, crops))
    _draw_panels(figure.add_subfigure(grid[0]), row, explanation, clean, adversarial)
    lower = figure.add_subfigure(grid[1])
    _draw_crops(lower, explanation.groups, clean.picture, adversarial.picture)
    lower.suptitle(_crops_title(explanation), fontsize=10)
    return figure


def _draw_panels(
    figure: SubFigure, row: Row, explanation: Explanation, clean: Views, adversarial: Views
) -> None:
    above, below = figure.subplots(2, 3, gridspec_kw={"hspace": 0.06})
    state = "adversarial" if row.success else "after the attack"
    state = "not attacked" if explanation.status == "skipped" else state
    draw_picture(above[0], clean.picture)
    write_around(above[0], "clean", prediction_below(row.clean, 32), size=10)
    draw_picture(below[0], adversarial.picture)
    write_around(below[0], state, prediction_below(row.adversarial, 32), size=10)
    for axes, views, which in ((above, clean, "clean"), (below, adversarial, state)):
        _draw_maps(axes[1], axes[2], views, explanation, which)
    if not explanation.groups:
        return
    height, width = clean.picture.shape[1:]
    unnumbered = number_marks(below[0], explanation.groups, (height, width))
    marks, kinds = legend_marks({group.shapley.label for group in explanation.groups})
    caveat = _CAVEAT if clean.guided is not None else ""
    legend = figure.legend(
        marks,
        kinds,
        loc="outside lower center",
        ncols=len(kinds),
        fontsize=10,
        frameon=False,
        handletextpad=0.2,
        title="\n".join(
            filter(
                None,
                (_marks_title(explanation, height, width), _unnumbered_words(unnumbered), caveat),
            )
        ),
        title_fontsize=9,
    )
    legend.get_title().set_multialignment("center")


def _draw_maps(
    first: Axes, second: Axes, views: Views, explanation: Explanation, which: str
) -> None:
    name = folded(f"for {views.class_name}", 36)
    height, width = views.picture.shape[1:]
    if views.heat is None:
        draw_words(first, "no map: the model shows no layers,\nor --layer none was given")
    else:
        draw_heat(first, views.picture, views.heat)
        draw_marks(first, explanation.groups, (height, width))
    empty = views.heat is not None and not bool((views.heat > 0).any())
    below = f"{name}\nzero everywhere" if empty else name
    write_around(first, f"{views.method}, {which}", below, size=10)
    if views.guided is None:
        draw_words(second, folded(views.why_not, 38, lines=6))
    else:
        draw_guided(second, views.guided)
        draw_marks(second, explanation.groups, (height, width))
        name += "" if bool((views.guided != 0).any()) else "\nzero everywhere"
    write_around(second, f"Guided {views.method}, {which}", name, size=10)


def _headline(row: Row, explanation: Explanation) -> str:
    wanted = "" if row.target_name is None else f"; target {row.target_name}"
    outcome = (
        f"failed: {outcome_words(row)}" if explanation.status == "failed" else outcome_words(row)
    )
    if not explanation.groups:
        return f"{outcome}; nothing changed{wanted}"
    pixels, groups = explanation.changed_pixels, len(explanation.groups)
    amount = f"{pixels} changed pixel{'s' if pixels != 1 else ''}"
    amount += f" in {groups} group{'s' if groups != 1 else ''}"
    spare = (
        f", {explanation.spare_pixels} not needed" if explanation.spare_pixels else ", each needed"
    )
    if explanation.spare_pixels is None:
        most = explanation.most_spare_pixels
        spare = "" if most is None else f", at most {most} not needed (not all were tried)"
    return f"{outcome}; {amount}{spare}{wanted}"


def _marks_title(explanation: Explanation, height: int, width: int) -> str:
    far = reach(explanation.groups, height, width)
    away = f", {far} pixel{'s' if far != 1 else ''} away from them" if far else ""
    return (
        f"Outlines: groups of changed pixels{away}. Shape and colour: what a group does. "
        "Numbers: as in the effects figure."
    )


def _unnumbered_words(unnumbered: list[int]) -> str:
    if not unnumbered:
        return ""
    return folded(f"No room for the numbers of: {', '.join(map(str, unnumbered))}", 110, lines=3)


def _crops_title(explanation: Explanation) -> str:
    count = len(explanation.groups)
    which = f"the {_MOST_CROPS} largest of {count} groups" if count > _MOST_CROPS else "all groups"
    return f"{which}, the largest effect first, with changes of scores in logits"


def shown_groups(groups: Sequence[Group]) -> list[Group]:
    """The groups with the largest effects, the largest first."""
    return sorted(groups, key=effect_of, reverse=True)[:_MOST_CROPS]


def _draw_crops(
    figure: SubFigure, groups: Sequence[Group], clean: Picture, adversarial: Picture
) -> None:
    """One column per group: its number and kind, before, after, and its two effects."""
    shown = shown_groups(groups)
    panels = figure.subplots(2, _MOST_CROPS, squeeze=False)
    for column in range(_MOST_CROPS):
        above, below = panels[:, column]
        if column >= len(shown):
            above.set_axis_off()
            below.set_axis_off()
            continue
        group = shown[column]
        for axes, picture in ((above, clean), (below, adversarial)):
            _draw_crop(axes, group, picture)
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


def _draw_crop(axes: Axes, group: Group, picture: Picture) -> None:
    """The part of the picture around the group."""
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
    """Columns and rows of a square around the group, each as start and stop."""
    top, left, bottom, right = group.box
    column, row = anchor_of(group)
    high, wide = bottom - top + 1, right - left + 1
    side = int(np.clip(max(high, wide) + 6, _LEAST_SIDE, _LARGEST_SIDE))
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
