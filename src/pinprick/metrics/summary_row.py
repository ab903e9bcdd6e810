"""One attack over all images and seeds: fooling rate, needed units and cost, with intervals."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pinprick.metrics.bootstrap import RESAMPLES, bootstrap_intervals
from pinprick.metrics.estimate import Estimate
from pinprick.metrics.needed import Numbers, mean_needed, mean_over_fooled, median_needed
from pinprick.metrics.outcomes import Outcomes
from pinprick.metrics.over_seeds import mean_and_deviation
from pinprick.metrics.unit import Unit
from pinprick.metrics.wilson import wilson_interval

PerSeed = Callable[..., Numbers]  # as ``mean_needed``

_STATISTICS: dict[str, PerSeed] = {
    "median_{}": median_needed,
    "mean_{}": mean_needed,
    "mean_{}_fooled": mean_over_fooled,
}


@dataclass(frozen=True, kw_only=True)
class SummaryRow:
    """The summary of one attack.

    Rates, counts and passes are over images that were classified correctly before the attack. Each
    number is computed per seed; its value here is the mean over seeds.

    Attributes:
        attack, model: Their names.
        settings: Settings of the attack that differ from the default, as text, where known.
        seeds: Number of runs.
        images: Number of images.
        correct: Images that were classified correctly before the attack, under every seed.
        wrong: Images that were misclassified before the attack.
        fooling_rate: Share of correct images that were fooled, with the Wilson interval.
        median_pixels, mean_pixels: Over all correct images; a failure counts as infinity.
        mean_pixels_fooled: Over fooled images alone.
        median_elements, mean_elements, mean_elements_fooled: The same in elements.
        forwards, backwards: Mean passes per correct image; NaN without one.
        seconds: Time per attacked image: that of all batches, divided by the attacked images; NaN
            without one.
        unit: The unit that the attack keeps small; None for neither, if unknown, and for grey
            images, where both units agree.
        fixed_k: Whether the attack may change a fixed number of units and seeks no fewer.
    """

    attack: str
    model: str
    settings: str
    seeds: int
    images: int
    correct: int
    wrong: int
    fooling_rate: Estimate
    median_pixels: Estimate
    mean_pixels: Estimate
    mean_pixels_fooled: Estimate
    median_elements: Estimate
    mean_elements: Estimate
    mean_elements_fooled: Estimate
    forwards: float
    backwards: float
    seconds: float
    unit: Unit | None = None
    fixed_k: bool = False


def summarise_runs(
    attack: str,
    model: str,
    runs: Sequence[Outcomes],
    *,
    settings: str = "",
    unit: Unit | None = None,
    fixed_k: bool = False,
    resamples: int = RESAMPLES,
) -> SummaryRow:
    """The summary of an attack; ``runs`` has one entry per seed, all of the same images.

    ``resamples`` is how often images are drawn for intervals; other arguments as in SummaryRow.
    """
    correct = np.logical_and.reduce([run.correct for run in runs])
    pixels = np.stack([run.pixels[correct] for run in runs])
    elements = np.stack([run.elements[correct] for run in runs])
    attacked = sum(int(run.attacked.sum()) for run in runs)
    return SummaryRow(
        attack=attack,
        model=model,
        settings=settings,
        seeds=len(runs),
        images=len(correct),
        correct=int(correct.sum()),
        wrong=max(run.wrong for run in runs),
        fooling_rate=_rate(np.isfinite(pixels).astype(np.float64)),
        **_needed(pixels, elements, resamples),
        forwards=_mean(np.stack([run.forwards[correct] for run in runs])),
        backwards=_mean(np.stack([run.backwards[correct] for run in runs])),
        seconds=sum(run.seconds for run in runs) / attacked if attacked else math.nan,
        unit=unit,
        fixed_k=fixed_k,
    )


def _rate(fooled: Numbers) -> Estimate:
    """The interval is that of one run: further seeds are not further images."""
    n = fooled.shape[1]
    rates = [float(row.sum()) / n if n else float("nan") for row in fooled]
    mean, deviation = mean_and_deviation(rates)
    low, high = wilson_interval(float(fooled.sum()) / len(fooled), n)
    return Estimate(mean, low, high, deviation)


def _needed(pixels: Numbers, elements: Numbers, resamples: int) -> dict[str, Estimate]:
    """Median, mean, and mean over fooled images in both units, by the name of the field."""
    both, seeds = np.concatenate((pixels, elements)), len(pixels)
    wanted = [
        (name.format(unit), statistic, rows)
        for unit, rows in (("pixels", slice(seeds)), ("elements", slice(seeds, None)))
        for name, statistic in _STATISTICS.items()
    ]
    intervals = bootstrap_intervals(
        both,
        [partial(_over_seeds, statistic, rows) for _, statistic, rows in wanted],
        resamples=resamples,
    )
    estimates = {}
    for (name, statistic, rows), (low, high) in zip(wanted, intervals, strict=True):
        mean, deviation = mean_and_deviation([float(statistic(row)[0]) for row in both[rows]])
        estimates[name] = Estimate(mean, low, high, deviation)
    return estimates


def _over_seeds(statistic: PerSeed, rows: slice, numbers: Numbers, weights: Numbers) -> Numbers:
    """The mean over the seeds in ``rows``, for each resample."""
    mean: Numbers = np.mean([statistic(row, weights) for row in numbers[rows]], axis=0)
    return mean


def _mean(counts: NDArray[np.int64]) -> float:
    return float(counts.mean()) if counts.size else math.nan
