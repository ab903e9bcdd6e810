"""The tables of a summary: fooling rate and cost, needed units, and paired tests."""

import math
from collections.abc import Sequence

from pinprick.metrics.bootstrap import RESAMPLES
from pinprick.metrics.estimate import Estimate
from pinprick.metrics.paired_attacks import PairedTest
from pinprick.metrics.summary_row import SummaryRow
from pinprick.metrics.unit import Unit
from pinprick.report.text_table import TextTable

OTHER_UNIT = "†"  # behind a count of the unit that the attack does not count
UNIT_PAIRS: tuple[tuple[Unit, Unit], ...] = (("pixels", "elements"), ("elements", "pixels"))
FIXED_K = "‡"  # behind counts of an attack that may change a fixed number of units


def rates_table(rows: Sequence[SummaryRow]) -> TextTable:
    """Fooling rate, passes and seconds; models and settings have a column where they differ."""
    extra = [
        name for name in ("model", "settings") if len({getattr(row, name) for row in rows}) > 1
    ]
    head = ("attack", *extra, "correct before", "fooling rate")
    cells = [
        (
            row.attack,
            *(getattr(row, name) for name in extra),
            f"{row.correct} of {row.images}",
            percent_text(row.fooling_rate),
            f"{number_text(row.forwards, whole=True)} + {number_text(row.backwards, whole=True)}",
            "-" if math.isnan(row.seconds) else f"{row.seconds:.3g}",
        )
        for row in rows
    ]
    return TextTable("Fooling rate and cost per image", (*head, "passes", "seconds"), cells)


def needed_table(rows: Sequence[SummaryRow], unit: Unit) -> TextTable:
    """Median, mean, and mean over fooled images alone."""
    cells = [
        (
            row.attack,
            with_interval(getattr(row, f"median_{unit}"), whole=True) + _mark(row, unit),
            with_interval(getattr(row, f"mean_{unit}")) + _mark(row, unit),
            with_interval(getattr(row, f"mean_{unit}_fooled")) + _mark(row, unit),
        )
        for row in rows
    ]
    head = ("attack", f"median {unit}", f"mean {unit}", f"mean {unit}, fooled only")
    return TextTable(f"Needed {unit}", head, cells)


def tests_table(pairs: Sequence[PairedTest]) -> TextTable:
    """One line per pair of attacks; counts are images for the first / for the second."""
    head = ("attacks", "images", "fooled by one alone", "p (McNemar)")
    in_units = ("fewer pixels", "p (Wilcoxon)", "fewer elements", "p (Wilcoxon)")
    cells = [
        (
            f"{pair.first} / {pair.second}",
            str(pair.images),
            f"{pair.only_first} / {pair.only_second}",
            _p_value(pair.p_fooled),
            "{} / {}".format(*pair.fewer_pixels),
            _p_value(pair.p_pixels),
            "{} / {}".format(*pair.fewer_elements),
            _p_value(pair.p_elements),
        )
        for pair in pairs
    ]
    return TextTable("Paired tests", (*head, *in_units), cells)


def explain_tables(rows: Sequence[SummaryRow], pairs: Sequence[PairedTest]) -> str:
    """What the tables are over, and what brackets, ± and p mean."""
    sentences = [
        "All numbers are over images that were correct before the attack.",
        "A failure needs infinitely many units.",
        "Brackets are 95 % intervals: Wilson for rates, bootstrap over images "
        f"({RESAMPLES:,} resamples) for units.",
        "Passes are forward + backward.",
    ]
    sentences += _unit_notes(rows)
    seeds = max(row.seeds for row in rows)
    if seeds > 1:
        sentences.append(f"± is the standard deviation over {seeds} seeds.")
    if pairs:
        sentences.append(
            "Paired tests count images for the first / the second attack; p is exact for McNemar "
            "and corrected by Holm's method."
        )
    return " ".join(sentences)


def _mark(row: SummaryRow, unit: Unit) -> str:
    """Behind counts that the attack does not keep small."""
    other = OTHER_UNIT if row.unit not in (None, unit) else ""
    return other + (FIXED_K if row.fixed_k else "")


def _unit_notes(rows: Sequence[SummaryRow]) -> list[str]:
    """What the marks mean, if there are any."""
    notes = []
    for other, unit in UNIT_PAIRS:
        if names := [row.attack for row in rows if row.unit == unit]:
            notes.append(f"{other_unit_note(names, unit, other)}.")
    if names := [row.attack for row in rows if row.fixed_k]:
        may, its = ("may", "its") if len(names) == 1 else ("may each", "their")
        notes.append(
            f"{FIXED_K} {_listed(names)} {may} change k units: {its} counts are not kept small."
        )
    return notes


def other_unit_note(names: Sequence[str], unit: Unit, other: Unit) -> str:
    """What the mark behind the ``other`` unit of these attacks means."""
    counts, its = ("counts", "its") if len(names) == 1 else ("count", "their")
    return f"{OTHER_UNIT} {_listed(names)} {counts} {unit}: {its} {other} are not kept small"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def with_interval(estimate: Estimate, *, whole: bool = False, digits: int | None = None) -> str:
    """For instance "3.40 ± 0.20 [2.90, 4.10]"; whole numbers without decimals if ``whole``.

    Numbers have so many ``digits`` behind the point, or about three in all.
    """
    value, low, high, spread = (
        number_text(number, whole=whole) if digits is None else decimal_text(number, digits)
        for number in (estimate.value, estimate.low, estimate.high, estimate.deviation)
    )
    over_seeds = "" if math.isnan(estimate.deviation) else f" ± {spread}"
    return f"{value}{over_seeds}" + ("" if math.isnan(estimate.low) else f" [{low}, {high}]")


def percent_text(rate: Estimate) -> str:
    """For instance "98.0 % [96.9, 98.7]", or "98.0 %" without an interval."""
    if math.isnan(rate.value):
        return "-"
    spread = "" if math.isnan(rate.deviation) else f" ± {100 * rate.deviation:.1f}"
    interval = "" if math.isnan(rate.low) else f" [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"
    return f"{100 * rate.value:.1f}{spread} %{interval}"


def decimal_text(number: float, digits: int) -> str:
    return "-" if math.isnan(number) else f"{number:.{digits}f}"


def number_text(number: float, *, whole: bool) -> str:
    """About three digits."""
    if math.isnan(number):
        return "-"
    if math.isinf(number):
        return "∞"
    if number >= 100 or (whole and number == round(number)):
        return f"{number:.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def _p_value(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"
