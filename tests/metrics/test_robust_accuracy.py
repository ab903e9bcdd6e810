"""The step function of robust accuracy, and means over seeds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinprick.metrics.over_seeds import mean_and_deviation
from pinprick.metrics.robust_accuracy import robust_accuracy, robust_accuracy_curve

pytestmark = pytest.mark.plain  # whole numbers where hints say float

INF = math.inf


def test_by_hand_with_ties_a_clean_error_and_a_failure() -> None:
    needed = np.array([0, 2, 2, 5, INF])
    assert robust_accuracy(needed, [0, 1, 2, 4, 5, 10**6]) == [0.8, 0.8, 0.4, 0.4, 0.2, 0.2]
    assert robust_accuracy_curve(needed) == [(0, 0.8), (2, 0.4), (5, 0.2)]


def test_all_failed_all_wrong_one_and_none() -> None:
    assert robust_accuracy_curve(np.array([INF, INF])) == [(0, 1.0)]
    assert robust_accuracy_curve(np.array([0.0, 0.0])) == [(0, 0.0)]
    assert robust_accuracy_curve(np.array([3.0])) == [(0, 1.0), (3, 0.0)]
    assert robust_accuracy_curve(np.array([])) == []
    assert all(map(math.isnan, robust_accuracy(np.array([]), [0, 1])))


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 7.0, INF]), min_size=1))
def test_the_curve_falls_from_clean_accuracy_to_the_share_of_failures(values: list[float]) -> None:
    needed = np.array(values)
    shares = robust_accuracy(needed, range(9))
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(np.mean(needed > 0))
    assert shares[-1] == pytest.approx(np.mean(np.isinf(needed)))
    curve = dict(robust_accuracy_curve(needed))
    assert [curve.get(k) for k in curve] == [shares[k] for k in curve]


def test_the_deviation_over_seeds_is_that_of_a_sample() -> None:
    assert mean_and_deviation([1.0, 2.0, 6.0]) == pytest.approx((3.0, math.sqrt(7)))
    mean, deviation = mean_and_deviation([4.0])
    assert (mean, math.isnan(deviation)) == (4.0, True)
    mean, deviation = mean_and_deviation([4.0, INF])
    assert (mean, math.isnan(deviation)) == (INF, True)
    assert math.isnan(mean_and_deviation([])[0])
