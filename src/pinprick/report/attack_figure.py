"""One attacked image as a figure: before, what changed, after."""

from matplotlib.figure import Figure

from pinprick.report.drawing import draw_changes, draw_picture, write_around
from pinprick.report.row import Row
from pinprick.report.words import changed, outcome_words, prediction_below, time_words
from pinprick.types import Picture


def attack_figure(row: Row, clean: Picture, adv: Picture, *, title: str) -> Figure:
    """Three panels: the clean image, the changed pixels enlarged, the adversarial image."""
    figure = Figure(figsize=(10.2, 4.6), dpi=150, layout="constrained")
    figure.suptitle(f"{title}: {_outcome(row)}", fontsize=11, parse_math=False)
    before, change, after = figure.subplots(1, 3)
    draw_picture(before, clean)
    write_around(before, "clean", prediction_below(row.clean, 32), size=10)
    how = draw_changes(change, clean, adv)
    write_around(change, how, changed(row), size=10)
    draw_picture(after, adv)
    state = "adversarial" if row.success else "after the attack"
    write_around(after, state, prediction_below(row.adversarial, 32), size=10)
    return figure


def _outcome(row: Row) -> str:
    time = "" if row.skipped else f" in {time_words(row)}"
    goal = "" if row.target_name is None else f"; target {row.target_name}"
    return f"{outcome_words(row)}{time}{goal}"
