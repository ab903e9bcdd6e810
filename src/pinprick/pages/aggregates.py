"""The numbers behind the plots of a report, as plain data per task.

Every plot is a list of series. A point of a series is a list: x, y, and the ends of the 95 %
interval of y. Infinite and undefined numbers are None.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pinprick.metrics.bootstrap import RESAMPLES
from pinprick.metrics.estimate import Estimate
from pinprick.metrics.needed import Numbers, median_needed
from pinprick.metrics.queries import fooled_by_queries
from pinprick.metrics.robust_accuracy import robust_accuracy, robust_accuracy_curve
from pinprick.metrics.summary_row import SummaryRow, summarise_runs
from pinprick.metrics.unit import Unit
from pinprick.metrics.wilson import wilson_interval
from pinprick.pages.report_parts import ReportRun, Steps

UNITS: tuple[Unit, ...] = ("pixels", "elements")
_MANY_ATTACKS, _FEW_RESAMPLES = 24, 1000  # where so many are summarised, images are drawn less
_MOST_POINTS = 40_000  # of all curves of a report
_FEWEST, _MANY = 24, 150  # points of a curve
_DOTS = 400  # images that the cost plot draws per attack
_GRID = 32  # numbers of passes at which the best so far is computed

Seeds = Sequence[ReportRun]
Point = list[int | float | None]


def summarise_attacks(
    by_attack: Mapping[str, Seeds], resamples: int = RESAMPLES
) -> dict[str, SummaryRow]:
    """The summary per attack, the attack with the fewest pixels first.

    Attacks that need equally many are in the order of their fooling rates. Intervals are from so
    many ``resamples`` of the images.
    """
    rows = [
        summarise_runs(
            name, seeds[0].task.model, [run.outcomes for run in seeds], resamples=resamples
        )
        for name, seeds in by_attack.items()
    ]
    return {row.attack: row for row in sorted(rows, key=_rank)}


def attack_line(row: SummaryRow, seeds: Seeds, left_out: Seeds = ()) -> dict[str, Any]:
    """Rates, needed units and cost of one attack; of several seeds the means.

    Errors are counted over all seeds, also over those that are ``left_out`` of the means.
    """
    correct = np.logical_and.reduce([run.outcomes.correct for run in seeds])
    fooled = [int((np.isfinite(run.outcomes.pixels) & correct).sum()) for run in seeds]
    return {
        "attack": row.attack,
        "seeds": row.seeds,
        "images": row.images,
        "correct": row.correct,
        "fooled": sum(fooled) / len(fooled),
        "fooling_rate": _estimate(row.fooling_rate),
        "median_pixels": _estimate(row.median_pixels),
        "median_elements": _estimate(row.median_elements),
        "forwards": _number(row.forwards),
        "backwards": _number(row.backwards),
        "seconds": _number(row.seconds),
        "lost_as_png": int(seeds[0].lost_as_png.sum()),
        "errors": sum(len(run.failed) for run in (*seeds, *left_out)),
        "left_out": sorted(run.seed for run in left_out),
    }


def resamples_for(attacks: int) -> int:
    """How often images are drawn for intervals, so that a large store takes seconds."""
    return _FEW_RESAMPLES if attacks > _MANY_ATTACKS else RESAMPLES


def points_per_curve(curves: int) -> int:
    """How many points each of so many curves may have, so that the report stays small."""
    return max(_FEWEST, min(_MANY, _MOST_POINTS // max(1, curves)))


def accuracy_curves(
    by_attack: Mapping[str, Seeds], unit: Unit, points: int
) -> list[dict[str, Any]]:
    """Robust accuracy against the number of units that may change, over all images."""
    curves = []
    for name, seeds in by_attack.items():
        needed = [run.outcomes.needed_or_wrong(unit) for run in seeds]
        budgets = sorted({k for one in needed for k, _ in robust_accuracy_curve(one)})
        budgets = _thinned(budgets, points)
        shares = np.mean([robust_accuracy(one, budgets) for one in needed], axis=0)
        images = len(needed[0])
        curves.append({"attack": name, "points": _with_intervals(budgets, shares, images)})
    return curves


def query_curves(by_attack: Mapping[str, Seeds], points: int) -> list[dict[str, Any]]:
    """Fooling rate against queries, over correct images; attacks without traces are left out."""
    curves = []
    for name, seeds in by_attack.items():
        firsts = [run.first_success[run.outcomes.correct] for run in seeds]
        if any(not len(first) or np.isnan(first).any() for first in firsts):
            continue
        steps = sorted({int(q) for first in firsts for q in first[np.isfinite(first)]})
        queries = _thinned(sorted({0, *steps}), points)
        shares = np.mean([fooled_by_queries(first, queries) for first in firsts], axis=0)
        images = len(firsts[0])
        curves.append({"attack": name, "points": _with_intervals(queries, shares, images)})
    return curves


def cost_series(
    by_attack: Mapping[str, Seeds], summaries: Mapping[str, SummaryRow], unit: Unit
) -> list[dict[str, Any]]:
    """Needed units against passes: the median with its interval, some images, the best so far."""
    series = []
    for name, seeds in by_attack.items():
        row = summaries[name]
        median = row.median_pixels if unit == "pixels" else row.median_elements
        series.append(
            {
                "attack": name,
                "passes": _number(row.forwards + row.backwards),
                "median": _estimate(median),
                "dots": _dots(seeds[0], unit),
                "line": _best_so_far(seeds[0], unit),
            }
        )
    return series


def transfer_map(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The transfer matrix: one row per source, one column per victim; None without victims."""
    if not lines:
        return None
    sources: dict[tuple[str, ...], list[Any]] = {}
    victims = sorted({str(line["victim"]) for line in lines})
    for line in lines:
        source = tuple(str(line[key]) for key in ("attack", "model", "data", "goal"))
        cells = sources.setdefault(source, [None] * len(victims))
        cells[victims.index(str(line["victim"]))] = {
            "rate": _estimate(line["fooling_rate"]),
            "images": line["images"],
            "floor": _number(line["clean_error"]),
        }
    return {
        "victims": victims,
        "sources": [list(source) for source in sources],
        "cells": list(sources.values()),
    }


def _rank(row: SummaryRow) -> tuple[float, float, str]:
    """NaN, where no image was correct, goes last."""
    median, rate = row.median_pixels.value, row.fooling_rate.value
    fewest = math.inf if math.isnan(median) else median
    return fewest, 0.0 if math.isnan(rate) else -rate, row.attack


def _dots(run: ReportRun, unit: Unit) -> list[list[int]]:
    """Passes and needed units of fooled images, evenly spread over the run."""
    outcomes = run.outcomes
    needed = outcomes.needed(unit)
    rows = np.flatnonzero(outcomes.correct & np.isfinite(needed))
    rows = rows[:: max(1, math.ceil(len(rows) / _DOTS))]
    passes = (outcomes.forwards + outcomes.backwards)[rows]
    return [[int(x), int(y)] for x, y in zip(passes, needed[rows], strict=True)]


def _best_so_far(run: ReportRun, unit: Unit) -> list[list[int | float]]:
    """Median over correct images of the fewest units after so many passes, where it is finite."""
    steps, correct = run.steps, np.flatnonzero(run.outcomes.correct)
    if steps is None or not len(correct) or not len(steps.passes):
        return []
    last = int(steps.passes.max())
    grid = np.unique(np.geomspace(1, max(1, last), _GRID).round().astype(np.int64))
    line: list[list[int | float]] = []
    for passes in grid.tolist():
        median = float(median_needed(_fewest(steps, unit, passes, len(run.images))[correct])[0])
        if math.isfinite(median) and (not line or median < line[-1][1]):
            line.append([passes, median])
    if line and line[-1][0] < last:
        line.append([last, line[-1][1]])
    return line


def _fewest(steps: Steps, unit: Unit, passes: int, images: int) -> Numbers:
    fewest = np.full(images, np.inf)
    until = steps.passes <= passes
    units = steps.pixels if unit == "pixels" else steps.elements
    np.minimum.at(fewest, steps.image[until], units[until])
    return fewest


def _thinned(values: Sequence[int], most: int) -> list[int]:
    """At most so many of the values, always the first and the last."""
    if len(values) <= most:
        return list(values)
    rows = np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))
    return [values[row] for row in rows]


def _with_intervals(xs: Sequence[int], shares: Iterable[float], images: int) -> list[Point]:
    points: list[Point] = []
    for x, share in zip(xs, shares, strict=True):
        low, high = wilson_interval(float(share) * images, images)
        points.append([x, _number(float(share)), _number(low), _number(high)])
    return points


def _estimate(estimate: Estimate) -> list[float | None]:
    """Value, and the ends of its interval."""
    return [_number(estimate.value), _number(estimate.low), _number(estimate.high)]


def _number(value: float) -> float | None:
    """Rounded to five significant digits; None where it is not finite."""
    return float(f"{value:.5g}") if math.isfinite(value) else None
