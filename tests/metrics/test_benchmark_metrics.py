"""Rates by both conventions, queries, speed-ups, transfer and ranks, by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinprick.metrics.estimate import Estimate
from pinprick.metrics.fooling_rates import fooled_of_all, fooled_of_correct
from pinprick.metrics.queries import fooled_by_queries, summarise_queries
from pinprick.metrics.ranks import shared_ranks
from pinprick.metrics.robust_accuracy import robust_accuracy
from pinprick.metrics.speedups import mean_of_ratios, ratio_of_sums
from pinprick.metrics.transfer import transfer

pytestmark = pytest.mark.plain  # whole numbers where hints say float

INF, NAN = math.inf, math.nan


def test_both_fooling_rates_by_hand() -> None:
    needed = np.array([0, 10, 10, 30, INF])
    correct = needed > 0
    assert fooled_of_correct(needed, correct) == (3, 4)
    assert [fooled_of_correct(needed, correct, k).rate for k in (9, 10, 24, 50)] == [
        0,
        0.5,
        0.5,
        0.75,
    ]
    assert fooled_of_all(needed) == (4, 5)
    assert [fooled_of_all(needed, k).number for k in (0, 9, 10, 24, 50)] == [1, 1, 3, 3, 4]


def test_rates_of_all_failed_all_skipped_one_and_no_image() -> None:
    failed, skipped = np.array([INF, INF]), np.zeros(2)
    assert fooled_of_correct(failed, failed > 0).rate == 0
    assert fooled_of_all(failed).rate == 0
    assert math.isnan(fooled_of_correct(skipped, skipped > 0).rate)
    assert fooled_of_all(skipped).rate == 1
    assert fooled_of_correct(np.array([3.0]), np.array([True]), 3) == (1, 1)
    assert math.isnan(fooled_of_all(np.array([])).rate)


@given(
    st.lists(st.sampled_from([0.0, 1.0, 5.0, INF]), min_size=1), st.sampled_from([0, 1, 4, 5, INF])
)
def test_the_two_rates_differ_by_the_clean_errors(values: list[float], budget: float) -> None:
    needed = np.array(values)
    correct = needed > 0
    accuracy = correct.mean()
    if correct.any():
        of_all = 1 - accuracy + accuracy * fooled_of_correct(needed, correct, budget).rate
        assert fooled_of_all(needed, budget).rate == pytest.approx(of_all)
    if budget < INF:
        (robust,) = robust_accuracy(needed, [int(budget)])
        assert fooled_of_all(needed, budget).rate == pytest.approx(1 - robust)


def test_success_against_queries_by_hand() -> None:
    first = np.array([5, 5, 100, INF])
    assert fooled_by_queries(first, [0, 4, 5, 100, 10**6]) == [0, 0, 0.5, 0.75, 0.75]
    found = summarise_queries(first, 1000)
    assert found.mean_fooled == pytest.approx(110 / 3)
    assert found.median_fooled == 5
    assert (found.mean_all, found.median_all) == (277.5, 52.5)


def test_queries_of_all_failed_one_and_no_image() -> None:
    failed = summarise_queries(np.array([INF, INF]), 1000)
    assert math.isnan(failed.mean_fooled)
    assert math.isnan(failed.median_fooled)
    assert (failed.mean_all, failed.median_all) == (1000, 1000)
    assert fooled_by_queries(np.array([INF]), [10]) == [0]
    assert summarise_queries(np.array([7.0]), 10).median_all == 7
    assert math.isnan(fooled_by_queries(np.array([]), [10])[0])
    assert math.isnan(summarise_queries(np.array([]), 10).mean_all)


def test_both_speed_ups_by_hand() -> None:
    baseline, cost = np.array([10.0, 100.0]), np.array([10.0, 10.0])
    assert mean_of_ratios(baseline, cost) == 5.5
    assert ratio_of_sums(baseline, cost) == 5.5
    baseline, cost = np.array([10.0, 100.0]), np.array([1.0, 100.0])
    assert mean_of_ratios(baseline, cost) == 5.5
    assert ratio_of_sums(baseline, cost) == pytest.approx(110 / 101)


def test_speed_ups_without_cost() -> None:
    skipped = np.zeros(2)
    assert math.isnan(mean_of_ratios(skipped, skipped))
    assert math.isnan(ratio_of_sums(skipped, skipped))
    assert mean_of_ratios(np.array([0.0, 6.0]), np.array([0.0, 2.0])) == 3
    assert ratio_of_sums(np.array([6.0]), np.array([2.0])) == 3


def test_transfer_is_over_images_that_both_classify_correctly() -> None:
    labels = np.array([0, 0, 0, 0, 0])
    source = np.array([True, True, True, True, False])
    clean, after = np.array([0, 0, 0, 1, 0]), np.array([2, 0, 1, 1, 1])
    found = transfer(source, labels, None, clean, after)
    assert found.fooled == (2, 3)
    assert found.floor == (1, 4)
    targeted = transfer(source, labels, np.full(5, 2), clean, after)
    assert targeted.fooled == (1, 3)


def test_transfer_where_no_image_is_correct_for_both() -> None:
    labels, wrong = np.array([0]), np.array([1])
    found = transfer(np.array([True]), labels, None, wrong, wrong)
    assert math.isnan(found.fooled.rate)
    assert found.floor.rate == 1


def between(low: float, high: float) -> Estimate:
    return Estimate((low + high) / 2, low, high, NAN)


def test_overlapping_intervals_share_a_rank() -> None:
    assert shared_ranks([between(0.4, 0.5), between(0.8, 0.9), between(0.85, 0.95)]) == [3, 1, 1]
    assert shared_ranks([between(0, 1), between(2, 3), between(4, 5)]) == [3, 2, 1]
    assert shared_ranks([between(0, 1), between(1, 2)]) == [1, 1]  # bounds that touch
    assert shared_ranks([]) == []
    assert shared_ranks([between(0, 1)]) == [1]


def test_the_ends_of_a_chain_of_overlapping_intervals_have_different_ranks() -> None:
    assert shared_ranks([between(0.7, 0.85), between(0.8, 0.95), between(0.9, 1.0)]) == [2, 1, 1]


def test_a_wide_interval_has_the_rank_of_the_best_that_it_overlaps() -> None:
    wide = Estimate(0.3, 0.1, 0.9, NAN)
    assert shared_ranks([between(0.8, 1.0), between(0.5, 0.6), wide]) == [1, 2, 1]


def test_without_intervals_only_equal_values_share_a_rank() -> None:
    alone = [Estimate(value, NAN, NAN, NAN) for value in (0.5, 0.7, 0.5)]
    assert shared_ranks(alone) == [2, 1, 2]
