"""Means and medians of needed units: failures count as infinity, or are left out by name."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinprick.metrics.needed import mean_needed, mean_over_fooled, median_needed

pytestmark = pytest.mark.plain  # whole numbers where hints say float

INF = math.inf


def numbers(*values: float) -> "np.typing.NDArray[np.float64]":
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize(
    ("needed", "mean", "median", "fooled"),
    [
        ((1, 2, 6), 3, 2, 3),
        ((6, 2, 1, 3), 3, 2.5, 3),
        ((2, 2, 2, 7), 3.25, 2, 3.25),  # ties
        ((1, 3, INF), INF, 3, 2),
        ((1, 3, INF, INF), INF, INF, 2),  # the middle two are 3 and infinity
        ((5,), 5, 5, 5),
    ],
)
def test_by_hand(needed: tuple[float, ...], mean: float, median: float, fooled: float) -> None:
    values = numbers(*needed)
    assert mean_needed(values).tolist() == [mean]
    assert median_needed(values).tolist() == [median]
    assert mean_over_fooled(values).tolist() == [fooled]


def test_all_failed() -> None:
    values = numbers(INF, INF)
    assert mean_needed(values).tolist() == median_needed(values).tolist() == [INF]
    assert np.isnan(mean_over_fooled(values)).all()


def test_no_image_has_no_mean() -> None:
    for statistic in (mean_needed, median_needed, mean_over_fooled):
        assert np.isnan(statistic(numbers())).tolist() == [True]


@given(
    st.lists(
        st.tuples(st.sampled_from([1.0, 2.0, 5.0, 9.0, INF]), st.integers(0, 3)), min_size=1
    ).filter(lambda pairs: any(weight for _, weight in pairs))
)
def test_a_weight_is_the_same_image_several_times(pairs: list[tuple[float, int]]) -> None:
    values, weights = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    repeated = np.repeat(values, weights.astype(int))
    for statistic in (mean_needed, median_needed, mean_over_fooled):
        np.testing.assert_allclose(statistic(values, weights[None]), statistic(repeated))
