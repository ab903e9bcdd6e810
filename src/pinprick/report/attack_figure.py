"""One attacked image as a figure: before, what changed, after."""

from matplotlib.figure import Figure

from pinprick.report.changes import draw_changes, draw_picture, write_around
from pinprick.report.row import Row
from pinprick.report.words import changed, duration, said_below
from pinprick.types import Picture


def attack_figure(row: Row, clean: Picture, adv: Picture, *, title: str) -> Figure:
    """Three panels: the clean image, the changed pixels enlarged, the adversarial image."""
    figure = Figure(figsize=(10.2, 4.6), dpi=150, layout="constrained")
    figure.suptitle(f"{title}: {outcome(row)}", fontsize=11, parse_math=False)
    before, change, after = figure.subplots(1, 3)
    draw_picture(before, clean)
    write_around(before, "clean", said_below(row.clean, 32), size=10)
    how = draw_changes(change, clean, adv)
    write_around(change, how, changed(row), size=10)
    draw_picture(after, adv)
    state = "adversarial" if row.success else "after the attack"
    write_around(after, state, said_below(row.adversarial, 32), size=10)
    return figure


def outcome(row: Row) -> str:
    """How it went, in a few words."""
    goal = "" if row.target_name is None else f"; wanted {row.target_name}"
    if row.skipped:
        return f"nothing to do, the goal was met before{goal}"
    if not row.success:
        return f"not fooled ({row.remark}) in {duration(row.seconds)}{goal}"
    return f"fooled in {duration(row.seconds)}{goal}"
