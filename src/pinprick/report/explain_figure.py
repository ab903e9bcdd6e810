"""One explained image in the paper's arrangement: the picture, Grad-CAM, Guided Grad-CAM.

Above the clean image, for its true class; below the adversarial one, for the class it is led to,
with the groups of changed pixels marked by what they do. The same marks lie on all maps: on those
above to see whether obscuring noise covers what the true class is seen by.
"""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from pinprick.explain.explanation import Explanation
from pinprick.report.changes import draw_picture, write_around
from pinprick.report.heat import Plane, draw_guided, draw_heat, draw_words
from pinprick.report.kinds import legend_marks
from pinprick.report.marks import draw_marks
from pinprick.report.row import Row
from pinprick.report.words import fate, folded, said_below
from pinprick.types import Picture

_CAVEAT = (
    "Guided Grad-CAM draws the edges that a network can see and hardly depends on the class: "
    "good for places, no evidence of causes."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Views:
    """An image and how the model looks at it for one class.

    Attributes:
        picture: The image.
        class_name: The class that the maps are for.
        heat: Grad-CAM; None if it was not taken.
        guided: Guided Grad-CAM; None if there is none.
        why_not: Why there is none, if so.
    """

    picture: Picture
    class_name: str
    heat: Plane | None
    guided: Picture | None
    why_not: str = ""


def explain_figure(
    row: Row, told: Explanation, clean: Views, adversarial: Views, *, title: str
) -> Figure:
    """Six panels with marks, and what the marks mean."""
    room = ConstrainedLayoutEngine(h_pad=0.08, hspace=0.04)
    figure = Figure(figsize=(10.2, 8.4), dpi=150, layout=room)
    figure.suptitle(f"{title}\n{_headline(row, told)}", fontsize=11, parse_math=False)
    above, below = figure.subplots(2, 3)
    state = "adversarial" if row.success else "after the attack"
    state = "not attacked" if told.status == "skipped" else state
    draw_picture(above[0], clean.picture)
    write_around(above[0], "clean", said_below(row.clean, 32), size=10)
    draw_picture(below[0], adversarial.picture)
    write_around(below[0], state, said_below(row.adversarial, 32), size=10)
    _mark(below[0], told, clean.picture, numbers=True)
    for axes, views, which in ((above, clean, "clean"), (below, adversarial, state)):
        _draw_maps(axes[1], axes[2], views, told, which)
    kinds = {group.shapley.label for group in told.groups}
    if kinds:
        legend = figure.legend(
            handles=legend_marks(kinds),
            loc="outside lower center",
            ncols=len(kinds),
            fontsize=10,
            frameon=False,
            title=f"{_marks_say(told)}\n{_CAVEAT if clean.guided is not None else ''}",
            title_fontsize=9,
        )
        legend.get_title().set_multialignment("center")
    return figure


def _draw_maps(first: Axes, second: Axes, views: Views, told: Explanation, which: str) -> None:
    name = folded(f"for {views.class_name}", 36)
    if views.heat is None:
        draw_words(first, "no map: the model shows no layers,\nor none was asked for")
    else:
        draw_heat(first, views.picture, views.heat)
        _mark(first, told, views.picture)
    empty = views.heat is not None and not bool((views.heat > 0).any())
    write_around(
        first, f"Grad-CAM, {which}", f"{name}\nzero everywhere" if empty else name, size=10
    )
    if views.guided is None:
        draw_words(second, folded(views.why_not, 38, lines=6))
    else:
        draw_guided(second, views.guided)
        _mark(second, told, views.picture)
        name += "" if bool((views.guided != 0).any()) else "\nzero everywhere"
    write_around(second, f"Guided Grad-CAM, {which}", name, size=10)


def _mark(axes: Axes, told: Explanation, picture: Picture, *, numbers: bool = False) -> None:
    draw_marks(axes, told.groups, min(picture.shape[1:]), numbers=numbers)


def _headline(row: Row, told: Explanation) -> str:
    wanted = "" if row.target_name is None else f"; wanted {row.target_name}"
    outcome = f"failed: {fate(row)}" if told.status == "failed" else fate(row)
    if not told.groups:
        return f"{outcome}; nothing changed{wanted}"
    pixels, groups = told.changed_pixels, len(told.groups)
    amount = f"{pixels} changed pixel{'s' if pixels != 1 else ''}"
    amount += f" in {groups} group{'s' if groups != 1 else ''}"
    spare = f", {told.spare_pixels or 'none'} to spare"
    if told.spare_pixels is None:
        most = told.most_spare_pixels
        spare = "" if most is None else f", at most {most} to spare (not all were tried)"
    return f"{outcome}; {amount}{spare}{wanted}"


def _marks_say(told: Explanation) -> str:
    largest = max(
        max(abs(group.shapley.obscuring), abs(group.shapley.leading)) for group in told.groups
    )
    return (
        f"what each group of changed pixels does; the largest mark moves a score by {largest:.2f}"
    )
