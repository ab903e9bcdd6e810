"""Every number of each attack on one task, and paired tests between the attacks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pinprick.metrics.estimate import Estimate
from pinprick.metrics.fooling_rates import Share, fooled_of_all, fooled_of_correct
from pinprick.metrics.needed import Numbers
from pinprick.metrics.optimality import area_under_curve, best_per_image, largest_needed
from pinprick.metrics.over_seeds import by_seed, mean_and_deviation
from pinprick.metrics.paired_attacks import PairedTest, compare_pairs
from pinprick.metrics.queries import Queries, fooled_by_queries, summarise_queries
from pinprick.metrics.speedups import mean_of_ratios, ratio_of_sums
from pinprick.metrics.summary_row import SummaryRow, summarise_runs
from pinprick.metrics.unit import Unit
from pinprick.metrics.wilson import wilson_interval
from pinprick.report.attack_board import seconds_per_batch
from pinprick.report.coverage import Coverage
from pinprick.report.store_runs import Run, StoreRuns, Task, shared_images
from pinprick.report.summary_tables import (
    needed_table,
    number_text,
    percent_text,
    rates_table,
    tests_table,
)
from pinprick.report.text_table import TextTable

QUERIES = (100, 1000, 10_000)  # forward passes at which success is shown


@dataclass(frozen=True, kw_only=True)
class DetailLine:
    """One attack on one task, beside its ``SummaryRow``.

    Attributes:
        attack: Its name.
        of_all: Fooling rate over all images, clean errors included.
        at: By k, share of correct images fooled with at most k units.
        area: Under robust accuracy, up to the most units that the best attack needs.
        within: By number, share of correct images fooled with so many forward passes; NaN without
            a trace.
        mean_queries, median_queries: Forward passes up to the first success, over fooled images.
        mean_queries_all, median_queries_all: Over all correct images; a failure counts as the most
            forward passes that the attack spent on an image.
        seconds_per_batch: Mean time per batch.
        percent_pixels, percent_elements: The medians in percent of the image.
        mean_of_ratios, ratio_of_sums: Passes of the baseline over passes, by both conventions.
    """

    attack: str
    of_all: Estimate
    at: Mapping[int, Estimate]
    area: float
    within: Mapping[int, float]
    mean_queries: float
    median_queries: float
    mean_queries_all: float
    median_queries_all: float
    seconds_per_batch: float
    percent_pixels: float
    percent_elements: float
    mean_of_ratios: float
    ratio_of_sums: float


@dataclass(frozen=True, kw_only=True)
class TaskDetails:
    """All attacks on one task, over the images that all of these attacks cover."""

    task: Task
    images: int
    rows: tuple[SummaryRow, ...]
    lines: tuple[DetailLine, ...]
    pairs: tuple[PairedTest, ...]
    unit: Unit
    baseline: str | None

    def tables(self) -> list[TextTable]:
        """Rates at k and queries, then the tables of a summary."""
        return [
            self._further(),
            rates_table(self.rows),
            needed_table(self.rows, "pixels"),
            needed_table(self.rows, "elements"),
            *([tests_table(self.pairs)] if self.pairs else []),
        ]

    def csv_lines(self) -> list[dict[str, Any]]:
        """Every number of each attack."""
        return [
            {**self.task._asdict(), **vars(row), **vars(line)}
            for row, line in zip(self.rows, self.lines, strict=True)
        ]

    def _further(self) -> TextTable:
        first = self.lines[0]
        head = ["attack", "of all images", *(f"at {k}" for k in first.at), "area"]
        head += [f"{count:,} forwards" for count in first.within]
        head += ["mean queries", "median queries", "seconds per batch"]
        head += ["median % of pixels", "of elements"]
        if self.baseline:
            head += ["mean of ratios", "ratio of sums"]
        rows = []
        for line in self.lines:
            cells = [line.attack, percent_text(line.of_all), *map(percent_text, line.at.values())]
            cells.append(number_text(line.area, whole=False))
            cells += [_percent(share) for share in line.within.values()]
            cells += [f"{one:.4g}" for one in (line.mean_queries, line.median_queries)]
            cells.append(f"{line.seconds_per_batch:.3g}")
            cells += [f"{one:.3g}" for one in (line.percent_pixels, line.percent_elements)]
            if self.baseline:
                ratios = (line.mean_of_ratios, line.ratio_of_sums)
                cells += [number_text(one, whole=False) for one in ratios]
            rows.append([cell.replace("inf", "∞").replace("nan", "-") for cell in cells])
        task = self.task
        against = f"; speed-up in passes over {self.baseline}" if self.baseline else ""
        caption = (
            f"{task.model}, {task.data}, {task.goal}: fooling rate at k {self.unit} and within so "
            f"many forwards; queries are forwards up to the first success of fooled images{against}"
        )
        return TextTable(caption, head, rows)


def task_details(
    store: StoreRuns,
    covered: Mapping[str, Coverage],
    task: Task,
    unit: Unit,
    ks: Sequence[int],
    *,
    size: tuple[int, int],
    baseline: str | None = None,
) -> TaskDetails | None:
    """The details of one task; None where no image is covered by all attacks on it.

    Args:
        store: All runs.
        covered: What each attack covers.
        task: The task.
        unit: What k and the area count.
        ks: Numbers of units.
        size: Pixels and elements of an image.
        baseline: The attack against which speed-ups are.
    """
    names = [name for name in store.attacks if task in covered[name].images]
    images = shared_images([covered[name].images[task] for name in names])
    if not len(images):
        return None
    runs = {name: [run.on(images) for run in covered[name].runs[task]] for name in names}
    best = best_per_image([run.fewest for group in runs.values() for run in group])
    outcomes = {name: [run.outcomes() for run in group] for name, group in runs.items()}
    rows = [summarise_runs(name, task.model, outcomes[name]) for name in names]
    lines = [
        _line(
            row, runs, unit, ks, largest_needed(best), size, baseline if baseline in runs else None
        )
        for row in rows
    ]
    return TaskDetails(
        task=task,
        images=len(images),
        rows=tuple(rows),
        lines=tuple(lines),
        pairs=tuple(compare_pairs(outcomes)),
        unit=unit,
        baseline=baseline,
    )


def _line(
    row: SummaryRow,
    every: Mapping[str, Sequence[Run]],
    unit: Unit,
    ks: Sequence[int],
    budget: float,
    size: tuple[int, int],
    baseline: str | None,
) -> DetailLine:
    runs = every[row.attack]
    pairs = by_seed({0: every[baseline], 1: runs}) if baseline else []
    queries = _queries(runs)
    costs = [(_passes(first), _passes(second)) for first, second in pairs]
    return DetailLine(
        attack=row.attack,
        of_all=_estimate([fooled_of_all(run.needed(unit)) for run in runs]),
        at={
            k: _estimate([fooled_of_correct(run.needed(unit), run.correct, k) for run in runs])
            for k in ks
        },
        area=mean_and_deviation([area_under_curve(run.needed(unit), budget) for run in runs])[0],
        within=_within(runs),
        mean_queries=queries.mean_fooled,
        median_queries=queries.median_fooled,
        mean_queries_all=queries.mean_all,
        median_queries_all=queries.median_all,
        seconds_per_batch=seconds_per_batch(runs),
        percent_pixels=100 * row.median_pixels.value / size[0],
        percent_elements=100 * row.median_elements.value / size[1],
        mean_of_ratios=mean_and_deviation([mean_of_ratios(*pair) for pair in costs])[0],
        ratio_of_sums=mean_and_deviation([ratio_of_sums(*pair) for pair in costs])[0],
    )


def _within(runs: Sequence[Run]) -> dict[int, float]:
    shares = []
    for run in runs:
        first = run.first_success[run.correct]
        traced = not np.isnan(first).any()
        shares.append(fooled_by_queries(first, QUERIES) if traced else [math.nan] * len(QUERIES))
    means = [mean_and_deviation(seeds)[0] for seeds in zip(*shares, strict=True)]
    return dict(zip(QUERIES, means, strict=True))


def _queries(runs: Sequence[Run]) -> Queries:
    """The means over seeds."""
    seeds = []
    for run in runs:
        first = run.first_success[run.correct]
        found = summarise_queries(first, float(run.forwards[run.correct].max(initial=0)))
        traced = not np.isnan(first).any()
        seeds.append(found if traced else Queries(*[math.nan] * 4))
    fields = zip(*(vars(one).values() for one in seeds), strict=True)
    return Queries(*(mean_and_deviation(values)[0] for values in fields))


def _passes(run: Run) -> Numbers:
    return (run.forwards + run.backwards).astype(np.float64)


def _estimate(shares: Sequence[Share]) -> Estimate:
    """The interval is that of one run: further seeds are not further images."""
    mean, deviation = mean_and_deviation([share.rate for share in shares])
    images = shares[0].images
    low, high = wilson_interval(mean * images if images else 0, images)
    return Estimate(mean, low, high, deviation)


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"
