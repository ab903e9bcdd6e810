"""One explained image in the paper's arrangement: the picture, a map of the class, guided edges.

Above the clean image, for its true class; below the adversarial one, for the class it is led to,
with the groups of changed pixels outlined and numbered. The same outlines lie on all maps: on those
above to see whether obscuring noise covers what the true class is seen by. Below, the largest
groups from near.
"""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from pinprick.explain.noise.explanation import Explanation
from pinprick.report.changes import draw_picture, write_around
from pinprick.report.crops import MOST, draw_crops
from pinprick.report.heat import Plane, draw_guided, draw_heat, draw_words
from pinprick.report.marks import draw_marks, number_marks
from pinprick.report.outlines import legend_marks, reach
from pinprick.report.row import Row
from pinprick.report.words import fate, folded, said_below
from pinprick.types import Picture

_CAVEAT = "Guided maps show edges and hardly depend on the class: no evidence of causes."
_PANELS, _CROPS = 8.2, 3.5  # inches of height


@dataclass(frozen=True, eq=False, kw_only=True)
class Views:
    """An image and how the model looks at it for one class.

    Attributes:
        picture: The image.
        class_name: The class that the maps are for.
        method: "Grad-CAM" or "LayerCAM".
        heat: The map of the class; None if it was not taken.
        guided: Its product with the guided gradient; None if there is none.
        why_not: Why there is none, if so.
    """

    picture: Picture
    class_name: str
    method: str
    heat: Plane | None
    guided: Picture | None
    why_not: str = ""


def explain_figure(
    row: Row, told: Explanation, clean: Views, adversarial: Views, *, title: str
) -> Figure:
    """Six panels with marks, what the marks mean, and the largest groups from near."""
    crops = _CROPS if told.groups else 0.0
    room = ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.05, hspace=0.03)
    figure = Figure(figsize=(10.8, _PANELS + crops), dpi=150, layout=room)
    figure.suptitle(f"{title}\n{_headline(row, told)}", fontsize=11, parse_math=False)
    if not told.groups:
        whole = figure.add_subfigure(figure.add_gridspec(1, 1)[0])
        _draw_panels(whole, row, told, clean, adversarial)
        return figure
    grid = figure.add_gridspec(2, 1, height_ratios=(_PANELS, crops))
    _draw_panels(figure.add_subfigure(grid[0]), row, told, clean, adversarial)
    lower = figure.add_subfigure(grid[1])
    draw_crops(lower, told.groups, clean.picture, adversarial.picture)
    lower.suptitle(_crops_say(told), fontsize=10)
    return figure


def _draw_panels(
    figure: SubFigure, row: Row, told: Explanation, clean: Views, adversarial: Views
) -> None:
    above, below = figure.subplots(2, 3, gridspec_kw={"hspace": 0.06})
    state = "adversarial" if row.success else "after the attack"
    state = "not attacked" if told.status == "skipped" else state
    draw_picture(above[0], clean.picture)
    write_around(above[0], "clean", said_below(row.clean, 32), size=10)
    draw_picture(below[0], adversarial.picture)
    write_around(below[0], state, said_below(row.adversarial, 32), size=10)
    for axes, views, which in ((above, clean, "clean"), (below, adversarial, state)):
        _draw_maps(axes[1], axes[2], views, told, which)
    if not told.groups:
        return
    height, width = clean.picture.shape[1:]
    unnumbered = number_marks(below[0], told.groups, (height, width))
    marks, kinds = legend_marks({group.shapley.label for group in told.groups})
    caveat = _CAVEAT if clean.guided is not None else ""
    legend = figure.legend(
        marks,
        kinds,
        loc="outside lower center",
        ncols=len(kinds),
        fontsize=10,
        frameon=False,
        handletextpad=0.2,
        title="\n".join(filter(None, (_marks_say(told, height, width), _rest(unnumbered), caveat))),
        title_fontsize=9,
    )
    legend.get_title().set_multialignment("center")


def _draw_maps(first: Axes, second: Axes, views: Views, told: Explanation, which: str) -> None:
    name = folded(f"for {views.class_name}", 36)
    height, width = views.picture.shape[1:]
    if views.heat is None:
        draw_words(first, "no map: the model shows no layers,\nor --layer none was given")
    else:
        draw_heat(first, views.picture, views.heat)
        draw_marks(first, told.groups, (height, width))
    empty = views.heat is not None and not bool((views.heat > 0).any())
    below = f"{name}\nzero everywhere" if empty else name
    write_around(first, f"{views.method}, {which}", below, size=10)
    if views.guided is None:
        draw_words(second, folded(views.why_not, 38, lines=6))
    else:
        draw_guided(second, views.guided)
        draw_marks(second, told.groups, (height, width))
        name += "" if bool((views.guided != 0).any()) else "\nzero everywhere"
    write_around(second, f"Guided {views.method}, {which}", name, size=10)


def _headline(row: Row, told: Explanation) -> str:
    wanted = "" if row.target_name is None else f"; target {row.target_name}"
    outcome = f"failed: {fate(row)}" if told.status == "failed" else fate(row)
    if not told.groups:
        return f"{outcome}; nothing changed{wanted}"
    pixels, groups = told.changed_pixels, len(told.groups)
    amount = f"{pixels} changed pixel{'s' if pixels != 1 else ''}"
    amount += f" in {groups} group{'s' if groups != 1 else ''}"
    spare = f", {told.spare_pixels} not needed" if told.spare_pixels else ", all needed"
    if told.spare_pixels is None:
        most = told.most_spare_pixels
        spare = "" if most is None else f", at most {most} not needed (not all were tried)"
    return f"{outcome}; {amount}{spare}{wanted}"


def _marks_say(told: Explanation, height: int, width: int) -> str:
    far = reach(told.groups, height, width)
    away = f", {far} pixel{'s' if far != 1 else ''} away from them" if far else ""
    return (
        f"Outlines: groups of changed pixels{away}. Shape and colour: what a group does. "
        "Numbers: as in the effects figure."
    )


def _rest(unnumbered: list[int]) -> str:
    if not unnumbered:
        return ""
    return folded(f"No room for the numbers of: {', '.join(map(str, unnumbered))}", 110, lines=3)


def _crops_say(told: Explanation) -> str:
    count = len(told.groups)
    which = "all groups" if count <= MOST else f"the {MOST} largest of {count} groups"
    return f"{which}, the largest effect first, with changes of scores in logits"
