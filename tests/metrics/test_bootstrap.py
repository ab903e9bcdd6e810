"""Bootstrap intervals: against scipy, against plain resampling, and at the edges."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pinprick.metrics import bootstrap
from pinprick.metrics.bootstrap import (
    bootstrap_intervals,
    percentile_interval,
    resampled_means,
)
from pinprick.metrics.estimate import Interval
from pinprick.metrics.needed import Numbers, mean_needed, mean_over_fooled, median_needed
from pinprick.metrics.summary_row import PerSeed, _over_seeds

pytestmark = pytest.mark.plain  # whole numbers where hints say float

NEEDED = np.random.default_rng(0).geometric(0.2, size=(1, 60)).astype(np.float64)


def bootstrap_interval(numbers: Numbers, statistic: PerSeed, **how: Any) -> Interval:
    """The interval of the mean over rows of a statistic."""
    (interval,) = bootstrap_intervals(
        numbers, [lambda rows, weights: _over_seeds(statistic, slice(None), rows, weights)], **how
    )
    return interval


def test_the_interval_of_a_mean_agrees_with_scipy() -> None:
    expected = stats.bootstrap(
        (NEEDED[0],), np.mean, method="percentile", n_resamples=10_000, rng=1
    ).confidence_interval
    assert bootstrap_interval(NEEDED, mean_needed) == pytest.approx(tuple(expected), abs=0.06)


def test_the_interval_of_a_median_is_that_of_plain_resampling() -> None:
    draws = np.random.default_rng(2).choice(NEEDED[0], size=(10_000, 60))
    medians = np.sort(np.median(draws, axis=1))
    expected = medians[249], medians[9750]
    assert bootstrap_interval(NEEDED, median_needed) == pytest.approx(expected, abs=0.5)


def test_two_images_by_hand() -> None:
    """A resample of 1 and 3 has a mean of 1, 2 or 3, the ends with a quarter each."""
    pair = np.array([[1.0, 3.0]])
    assert bootstrap_interval(pair, mean_needed) == (1.0, 3.0)
    assert bootstrap_interval(pair, mean_needed, level=0.4) == (2.0, 2.0)


def test_a_failure_may_reach_the_upper_bound() -> None:
    half = np.array([[1.0, 2.0, math.inf, math.inf]])
    assert bootstrap_interval(half, mean_needed).high == math.inf
    low, high = bootstrap_interval(half, mean_over_fooled)  # a resample without a success is left
    assert (low, high) == (1.0, 2.0)
    assert bootstrap_interval(np.full((1, 5), math.inf), median_needed) == (math.inf, math.inf)


def test_too_few_images_have_no_interval() -> None:
    for images in (0, 1):
        assert np.isnan(bootstrap_interval(np.ones((1, images)), mean_needed)).all()
    assert np.isnan(bootstrap_interval(np.full((1, 3), math.inf), mean_over_fooled)).all()


def test_seeds_are_not_further_images() -> None:
    """Three seeds that agree are as uncertain as one of them."""
    one = bootstrap_interval(NEEDED, mean_needed)
    assert bootstrap_interval(NEEDED.repeat(3, axis=0), mean_needed) == pytest.approx(one)


def test_the_seed_decides_and_the_size_of_a_chunk_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    first = bootstrap_interval(NEEDED, mean_needed, seed=3)
    assert bootstrap_interval(NEEDED[:, ::-1], mean_needed, seed=3) == first
    assert bootstrap_interval(NEEDED, mean_needed, seed=4) != first
    monkeypatch.setattr(bootstrap, "_AT_ONCE", 1000)
    assert bootstrap_interval(NEEDED, mean_needed, seed=3) == first


def test_statistics_together_are_those_alone() -> None:
    both = np.concatenate((NEEDED, 3 * NEEDED))
    mean, tripled = bootstrap_intervals(
        both,
        [
            lambda rows, weights: mean_needed(rows[0], weights),
            lambda rows, weights: mean_needed(rows[1], weights),
        ],
    )
    assert tripled == pytest.approx((3 * mean.low, 3 * mean.high))
    assert mean == bootstrap_interval(NEEDED, mean_needed)


def test_resampled_means_give_the_interval_of_the_mean() -> None:
    means = resampled_means(NEEDED, resamples=4000)
    assert means.shape == (4000, 1)
    expected = bootstrap_interval(NEEDED, mean_needed)
    assert percentile_interval(means[:, 0]) == pytest.approx(tuple(expected), abs=0.06)
    assert resampled_means(NEEDED + 1, resamples=4000) == pytest.approx(means + 1)


def test_the_means_of_one_image_have_no_resamples() -> None:
    assert np.isnan(resampled_means(np.array([[3.0]]), resamples=5)).all()
