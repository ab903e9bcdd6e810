"""Several attacks on one image: one column per attack, its image above, its change below."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from pinprick.report.drawing import draw_changes, draw_picture, write_around
from pinprick.report.row import Prediction, Row
from pinprick.report.words import changed, folded, outcome_words, prediction_below, time_words
from pinprick.types import Picture


@dataclass(frozen=True, eq=False)
class Column:
    """What one attack did to the image.

    Attributes:
        name: Name of the attack in tables.
        title: Name of the attack in figures.
        row: What was measured.
        adv: The adversarial image.
        judged: Prediction of another model for it; None without one.
        settings: Settings of the attack that differ from the default, as text.
        unit: What the attack counts, "elements" or "pixels"; None if neither.
    """

    name: str
    title: str
    row: Row
    adv: Picture
    judged: Prediction | None = None
    settings: str = ""
    unit: str | None = None

    @property
    def counts_other(self) -> str:
        """The unit that the attack does not count; empty for grey images, where both agree."""
        if self.unit is None or len(self.adv) == 1:
            return ""
        return "elements" if self.unit == "pixels" else "pixels"

    def headed(self, name: str) -> str:
        """The name, followed by the settings if there are any."""
        return f"{name}, {self.settings}" if self.settings else name


def compare_figure(
    clean: Picture, columns: Sequence[Column], *, title: str, clean_prediction: Prediction
) -> Figure:
    """One column for the clean image, then one per attack."""
    count = len(columns) + 1
    figure = Figure(figsize=(2.5 * count, 6.8), dpi=150, layout="constrained")
    figure.suptitle(folded(title, 30 * count), fontsize=11, parse_math=False)
    above, below = figure.subplots(2, count, squeeze=False)
    draw_picture(above[0], clean)
    write_around(above[0], "clean", prediction_below(clean_prediction))
    below[0].axis("off")
    for upper, lower, column in zip(above[1:], below[1:], columns, strict=True):
        draw_picture(upper, column.adv)
        prediction = prediction_below(column.judged or column.row.adversarial)
        write_around(upper, folded(column.headed(column.title)), prediction)
        how = draw_changes(lower, clean, column.adv)
        write_around(lower, how, _caption(column.row))
    return figure


def _caption(row: Row) -> str:
    """Changed pixels and elements, the time, and why the attacked model is not fooled, if so."""
    failed = "" if row.success and not row.skipped else f"\n{folded(outcome_words(row), 30)}"
    return f"{changed(row)}\n{time_words(row)}{failed}"
