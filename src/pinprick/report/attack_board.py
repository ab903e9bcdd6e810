"""The board of attacks: optimality against the best of all attacks, over the images they share."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pinprick.metrics.bootstrap import percentile_interval, resampled_means
from pinprick.metrics.estimate import Estimate
from pinprick.metrics.fooling_rates import fooled_of_all, fooled_of_correct
from pinprick.metrics.needed import Numbers, median_needed
from pinprick.metrics.optimality import (
    excess_units,
    largest_excess,
    optimality,
    trapezoid_optimality,
)
from pinprick.metrics.over_seeds import by_seed, mean_and_deviation
from pinprick.metrics.ranks import shared_ranks
from pinprick.metrics.unit import Unit
from pinprick.report.coverage import Coverage
from pinprick.report.store_runs import Indices, Run, StoreRuns, Task, any_images, rows_of

RESAMPLES = 1000  # of a board; a million rows take seconds with more


@dataclass(frozen=True, kw_only=True)
class AttackLine:
    """One attack over all tasks of the board.

    Attributes:
        rank: One more than the number of attacks whose interval lies wholly above; None where the
            attack is not ranked.
        attack: Its name.
        data, goal: What the models are attacked on, and the kind of goal.
        optimality: The mean over tasks, with the bootstrap interval over images.
        trapezoid: The same by the trapezoid rule of AttackBench's code.
        fooling_rate: Of the images that were correct before the attack; the mean over tasks.
        fooling_rate_of_all: Of all images, clean errors included; the mean over tasks.
        median: Needed units over the correct images of all tasks; infinite for failures.
        forwards, backwards: Mean passes per correct image.
        seconds: Mean time per attacked image.
        seconds_per_batch: Mean time per batch.
        tasks, images: How many tasks and images the numbers are over.
        seeds: Number of seeds; rates and counts are means over them.
        done, expected: Rows that the attack has of the board, and that it should have.
        errors: Rows with an error.
    """

    rank: int | None
    attack: str
    data: str
    goal: str
    optimality: Estimate
    trapezoid: float
    fooling_rate: Estimate
    fooling_rate_of_all: Estimate
    median: float
    forwards: float
    backwards: float
    seconds: float
    seconds_per_batch: float
    tasks: int
    images: int
    seeds: int
    done: int
    expected: int
    errors: int


def attack_lines(
    store: StoreRuns, covered: Mapping[str, Coverage], unit: Unit, *, data: str, goal: str
) -> list[AttackLine]:
    """One line per attack: ranked ones from the best, then those that are not complete."""
    best = {task: _Best(store, task) for task in store.tasks}
    estimates = _optimalities(covered, best, unit)
    ranked = [name for name, one in covered.items() if one.complete and _known(estimates[name])]
    ranks = dict(zip(ranked, shared_ranks([estimates[name] for name in ranked]), strict=True))
    lines = [
        _line(name, data, goal, one, estimates[name], ranks.get(name), best, unit)
        for name, one in covered.items()
    ]
    return sorted(
        lines,
        key=lambda line: (
            line.rank is None,
            -line.optimality.value if _known(line.optimality) else math.inf,
            line.attack,
        ),
    )


def over_tasks(values: Mapping[Task, Sequence[float]]) -> Estimate:
    """Mean over the tasks where it is defined, then over seeds, with the deviation over seeds."""
    defined = {task: seeds for task, seeds in values.items() if not any(map(math.isnan, seeds))}
    value, deviation = mean_and_deviation([sum(one) / len(one) for one in by_seed(defined)])
    return Estimate(value, math.nan, math.nan, deviation)


class _Best:
    """The fewest units per image of a task over all attacks and seeds."""

    def __init__(self, store: StoreRuns, task: Task) -> None:
        runs = [
            run for attack in store.attacks for run in store.runs.get((attack, task), {}).values()
        ]
        self.index = any_images([run.index for run in runs])
        self.fewest: Numbers = np.full(len(self.index), np.inf)
        for run in runs:
            rows = rows_of(run.index, self.index)
            self.fewest[rows] = np.minimum(self.fewest[rows], run.fewest)

    def on(self, images: Indices) -> Numbers:
        return self.fewest[rows_of(images, self.index)]


def _optimalities(
    covered: Mapping[str, Coverage], best: Mapping[Task, _Best], unit: Unit
) -> dict[str, Estimate]:
    """The optimality of each attack, all from the same draws of images."""
    by_count: dict[int, list[tuple[str, Task]]] = {}  # draws depend on the number of images
    for name, one in covered.items():
        for task, images in one.images.items():
            by_count.setdefault(len(images), []).append((name, task))
    drawn: dict[str, list[Numbers]] = {name: [] for name in covered}
    values: dict[str, dict[Task, list[float]]] = {name: {} for name in covered}
    largest_of: dict[tuple[str, Task], tuple[Task, bytes]] = {}
    for pairs in by_count.values():
        rows: dict[tuple[object, ...], Numbers] = {}
        for name, task in pairs:
            fewest = best[task].on(covered[name].images[task])
            needed = [run.needed(unit) for run in covered[name].runs[task]]
            values[name][task] = [optimality(run, fewest) for run in needed]
            rows[name, task] = np.mean([excess_units(run, fewest) for run in needed], axis=0)
            largest_of[name, task] = (task, fewest.tobytes())  # attacks on the same images share it
            rows[largest_of[name, task]] = largest_excess(fewest)
        means = resampled_means(np.stack(list(rows.values())), resamples=RESAMPLES).T
        drawn_of = dict(zip(rows, means, strict=True))
        for name, task in pairs:
            excess, largest = drawn_of[name, task], drawn_of[largest_of[name, task]]
            undefined = np.full_like(excess, np.nan)
            drawn[name].append(1 - np.divide(excess, largest, out=undefined, where=largest > 0))
    estimates = {}
    for name in covered:
        found = over_tasks(values[name])
        low, high = percentile_interval(_mean_over_tasks(drawn[name]))
        estimates[name] = Estimate(found.value, low, high, found.deviation)
    return estimates


def _mean_over_tasks(drawn: Sequence[Numbers]) -> Numbers:
    """Per resample, the mean over the tasks in which it is defined."""
    if not drawn:
        return np.array([])
    stacked = np.stack(drawn)
    count = (~np.isnan(stacked)).sum(axis=0)
    undefined = np.full(stacked.shape[1], np.nan)
    means: Numbers = np.divide(np.nansum(stacked, axis=0), count, out=undefined, where=count > 0)
    return means


def _line(
    name: str,
    data: str,
    goal: str,
    covered: Coverage,
    estimate: Estimate,
    rank: int | None,
    best: Mapping[Task, _Best],
    unit: Unit,
) -> AttackLine:
    def per_task(measure: Callable[[Task, Run], float]) -> Estimate:
        return over_tasks(
            {task: [measure(task, run) for run in runs] for task, runs in covered.runs.items()}
        )

    def trapezoid(task: Task, run: Run) -> float:
        return trapezoid_optimality(run.needed(unit), best[task].on(run.index))

    def of_correct(_: Task, run: Run) -> float:
        return fooled_of_correct(run.needed(unit), run.correct).rate

    every = [run for runs in covered.runs.values() for run in runs]
    correct = sum(int(run.correct.sum()) for run in every)
    return AttackLine(
        rank=rank,
        attack=name,
        data=data,
        goal=goal,
        optimality=estimate,
        trapezoid=per_task(trapezoid).value,
        fooling_rate=per_task(of_correct),
        fooling_rate_of_all=per_task(lambda _, run: fooled_of_all(run.needed(unit)).rate),
        median=mean_and_deviation([_median(runs, unit) for runs in by_seed(covered.runs)])[0],
        forwards=_ratio(sum(int(run.forwards[run.correct].sum()) for run in every), correct),
        backwards=_ratio(sum(int(run.backwards[run.correct].sum()) for run in every), correct),
        seconds=_ratio(
            sum(float(run.seconds.sum()) for run in every),
            sum(int((~run.skipped).sum()) for run in every),
        ),
        seconds_per_batch=seconds_per_batch(every),
        tasks=len(covered.images),
        images=sum(map(len, covered.images.values())),
        seeds=covered.seeds,
        done=covered.done,
        expected=covered.expected,
        errors=covered.errors,
    )


def seconds_per_batch(runs: Sequence[Run]) -> float:
    """The time of all batches, divided by their number."""
    batches = sum(float(run.batch_share.sum()) for run in runs)
    return _ratio(sum(float(run.seconds.sum()) for run in runs), batches)


def _median(runs: Sequence[Run], unit: Unit) -> float:
    """Over the correct images of all tasks."""
    return float(median_needed(np.concatenate([run.needed(unit)[run.correct] for run in runs]))[0])


def _ratio(total: int | float, count: int | float) -> float:
    return total / count if count else math.nan


def _known(estimate: Estimate) -> bool:
    return not math.isnan(estimate.value)
