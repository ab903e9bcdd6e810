"""Numbers of samples as text: rates, means with intervals, and what stands where nothing is."""

from collections.abc import Iterable, Sequence

import numpy as np

from generators.paper.rows import Numbers, Sample, Samples, on_shared_images
from pinprick.metrics.bootstrap import bootstrap_intervals
from pinprick.metrics.needed import mean_over_fooled
from pinprick.metrics.over_seeds import mean_and_deviation
from pinprick.metrics.wilson import wilson_interval
from pinprick.report.docs_measured import markdown_table

DASH = "\N{EN DASH}"
NOT_MEASURED = "not measured"
MISSING = f"Where ours is missing, a field has the paper's figure, or {DASH} if it has none."
RESAMPLES = 2000


def first_of(samples: Samples) -> Sample | None:
    """The sample of seed 0, which has the most images."""
    return samples.get(0) or next(iter(samples.values()), None)


def rate(count: int, n: int) -> str:
    """A rate with its 95 % interval and n."""
    return f"{rate_alone(count, n)}, n {n}" if n else DASH


def rate_alone(count: int, n: int) -> str:
    """A rate with its 95 % interval, where n stands elsewhere."""
    if not n:
        return DASH
    low, high = wilson_interval(count, n)
    return f"{percent(count / n)} ({100 * low:.0f}{DASH}{100 * high:.0f})"


def mean_of_fooled(sample: Sample, *, share: bool = False) -> str:
    """Mean elements of the images that are fooled, or their share of all; a dash if none is."""
    if not sample.fooled.any():
        return DASH
    mean = float(sample.elements[sample.fooled].mean())
    return percent(mean / sample.total) if share else short(mean)


def fooling_rate(sample: Sample) -> str:
    return rate(int(sample.fooled.sum()), sample.n)


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def mean_with_interval(needed: Numbers) -> str:
    """The mean over fooled images, with its bootstrap interval."""
    if not np.isfinite(needed).any():
        return DASH
    value = float(mean_over_fooled(needed)[0])

    def statistic(numbers: Numbers, weights: Numbers) -> Numbers:
        return mean_over_fooled(numbers[0], weights)

    (interval,) = bootstrap_intervals(needed[None], [statistic], resamples=RESAMPLES)
    if np.isnan(interval.low):
        return short(value)
    return f"{short(value)} ({short(interval.low)}{DASH}{short(interval.high)})"


def median(needed: Numbers) -> str:
    """The median over all correct images, failures infinite."""
    value = float(np.median(needed)) if len(needed) else np.inf
    return short(value) if np.isfinite(value) else "∞"


def over_seeds(samples: Samples, within: int | None = None) -> str:
    """Mean and deviation over seeds of the mean elements, on the images that all seeds have.

    With ``within``, of the fooling rate in % with at most so many elements.
    """
    if len(samples) < 2:
        return DASH
    parts = list(on_shared_images(samples).values())
    if not parts[0].n or (within is None and not all(part.fooled.any() for part in parts)):
        return DASH
    values = [
        float(mean_over_fooled(part.elements)[0])
        if within is None
        else 100 * float((part.elements <= within).mean())
        for part in parts
    ]
    mean, deviation = mean_and_deviation(values)
    return f"{short(mean)} ± {short(deviation)}, {len(parts)} seeds, n {parts[0].n}"


def short(value: float) -> str:
    """Three digits, and no more than one decimal from 10 on."""
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def measured_table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of the rows that are measured; below it stands how many are not."""
    every = list(lines)
    known = [line for line in every if NOT_MEASURED not in line]
    parts = [markdown_table(head, known)] if known else []
    if len(known) < len(every):
        missing = len(every) - len(known)
        parts.append(f"Rows that are {NOT_MEASURED}: {missing} of {len(every)}.")
    return "\n\n".join(parts)
