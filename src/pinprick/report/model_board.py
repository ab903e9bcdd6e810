"""The board of models: robust accuracy at k under the worst case of several attacks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinprick.metrics.estimate import Estimate
from pinprick.metrics.needed import Numbers
from pinprick.metrics.optimality import best_per_image
from pinprick.metrics.over_seeds import by_seed, mean_and_deviation
from pinprick.metrics.ranks import shared_ranks
from pinprick.metrics.robust_accuracy import robust_accuracy
from pinprick.metrics.unit import Unit
from pinprick.metrics.wilson import wilson_interval
from pinprick.report.coverage import Coverage
from pinprick.report.store_runs import Indices, StoreRuns, Task, any_images, shared_images


@dataclass(frozen=True, kw_only=True)
class ModelLine:
    """One model on some data, under the worst case of the stated attacks.

    Attributes:
        rank: Among models on the same data with the same goal: one more than the number whose
            interval lies wholly above; None where the model is not ranked.
        model, weights, data, goal: What was attacked.
        images: Images that every stated attack covers; the numbers are over these.
        expected: Images that any model on this data has; a model with fewer is not ranked.
        missing: Stated attacks that cover no image of the model.
        clean_accuracy: Share of images that are correct before the attacks.
        robust_accuracy: By k, share of images that stay correct when at most k units change.
    """

    rank: int | None
    model: str
    weights: str
    data: str
    goal: str
    images: int
    expected: int
    missing: int
    clean_accuracy: Estimate
    robust_accuracy: Mapping[int, Estimate]


def model_lines(
    store: StoreRuns,
    stated: Mapping[str, Coverage],
    unit: Unit,
    ks: Sequence[int],
    rank_at: int,
) -> list[ModelLine]:
    """One line per task, by data and goal and then from the most robust model.

    Args:
        store: All runs.
        stated: What the attacks cover whose worst case counts.
        unit: What k counts.
        ks: Numbers of units that may change.
        rank_at: The one of them by which models are ranked.
    """
    lines = []
    groups = dict.fromkeys((task.data, task.goal) for task in store.tasks)
    for data, goal in groups:
        tasks = [task for task in store.tasks if (task.data, task.goal) == (data, goal)]
        found = [_line(task, store, tasks, stated, unit, ks) for task in tasks]
        whole = [line for line in found if line.images == line.expected and line.images]
        estimates = [line.robust_accuracy[rank_at] for line in whole]
        ranked = [
            replace(line, rank=rank)
            for line, rank in zip(whole, shared_ranks(estimates), strict=True)
        ]
        ranked.sort(key=lambda line: -line.robust_accuracy[rank_at].value)
        lines += [*ranked, *(line for line in found if line not in whole)]
    return lines


def worst_cases(
    stated: Mapping[str, Coverage], task: Task, images: Indices, unit: Unit
) -> list[Numbers]:
    """Needed units under the worst case over attacks, once per seed: one run of each attack."""
    needed = {
        name: [run.on(images).needed(unit) for run in one.runs[task]]
        for name, one in stated.items()
    }
    return [best_per_image(runs) for runs in by_seed(needed)]


def _line(
    task: Task,
    store: StoreRuns,
    tasks: Sequence[Task],
    stated: Mapping[str, Coverage],
    unit: Unit,
    ks: Sequence[int],
) -> ModelLine:
    nothing: Indices = np.array([], dtype=np.int64)
    have = [one.images.get(task, nothing) for one in stated.values()]
    images = shared_images(have)
    expected = any_images([store.images.get(one, nothing) for one in tasks])
    needed = worst_cases(stated, task, images, unit) if len(images) else [np.array([])]
    budgets = [0, *ks]
    shares = list(zip(*(robust_accuracy(one, budgets) for one in needed), strict=True))
    clean, *robust = (_estimate(seeds, len(images)) for seeds in shares)
    return ModelLine(
        rank=None,
        model=task.model,
        weights=task.weights,
        data=task.data,
        goal=task.goal,
        images=len(images),
        expected=len(expected),
        missing=sum(not len(one) for one in have),
        clean_accuracy=clean,
        robust_accuracy=dict(zip(ks, robust, strict=True)),
    )


def _estimate(shares: Sequence[float], images: int) -> Estimate:
    """The interval is that of one run: further seeds are not further images."""
    mean, deviation = mean_and_deviation(shares)
    low, high = wilson_interval(mean * images if images else 0, images)
    return Estimate(mean, low, high, deviation)
