"""Area and optimality against numbers worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinprick.metrics.optimality import (
    area_under_curve,
    best_per_image,
    excess_units,
    largest_excess,
    largest_needed,
    optimality,
    trapezoid_optimality,
)
from pinprick.metrics.robust_accuracy import robust_accuracy

pytestmark = pytest.mark.plain  # whole numbers where hints say float

INF = math.inf
BEST = [0.0, 2.0, 4.0, 6.0, 8.0]


def exact(needed: list[float], best: list[float]) -> float:
    return optimality(np.array(needed, float), np.array(best, float))


@pytest.mark.parametrize(
    ("needed", "by_hand", "published"),
    [
        ([0, 2, 4, 6, 8], 1, 1),
        ([0, 4, 4, 8, 8], 2 / 3, 1),
        ([0, 2, INF, INF, 8], 0.5, 1),
        ([0, INF, INF, INF, INF], 0, 1),
    ],
)
def test_both_forms_by_hand(needed: list[float], by_hand: float, published: float) -> None:
    assert exact(needed, BEST) == pytest.approx(by_hand)
    pair = np.array(needed, float), np.array(BEST, float)
    assert trapezoid_optimality(*pair) == pytest.approx(published)


def test_the_trapezoid_comes_near_the_exact_form_where_there_are_many_images() -> None:
    best = np.random.default_rng(0).integers(1, 60, 2000).astype(float)
    failed = np.where(np.arange(2000) % 10 < 3, INF, best)
    assert optimality(failed, best) == pytest.approx(0.7, abs=0.02)
    assert trapezoid_optimality(failed, best) == pytest.approx(0.7, abs=0.02)
    assert trapezoid_optimality(best, best) == 1


def test_the_trapezoid_can_exceed_one() -> None:
    needed, best = np.array([5.0, 5, 5, 10]), np.array([1.0, 5, 5, 10])
    # steps at 5 and 10, from 1/4 to 0: 0.625; the best has steps at 1, 5, 10: 2.625
    assert trapezoid_optimality(needed, best) == pytest.approx(1 + 2 / (10 - 2.625))
    assert exact([5, 5, 5, 10], [1, 5, 5, 10]) == pytest.approx(1 - 1 / (10 - 5.25))


@pytest.mark.parametrize(
    ("needed", "best"),
    [
        ([], []),
        ([0, 0], [0, 0]),  # all skipped
        ([INF, INF], [INF, INF]),  # all failed
        ([0, INF], [0, INF]),
        ([3], [3]),  # one image: no attack could score lower
        ([INF], [3]),
        ([3, 3], [3, 3]),  # ties alone
    ],
)
def test_optimality_is_undefined_where_no_attack_could_do_worse(
    needed: list[float], best: list[float]
) -> None:
    assert math.isnan(exact(needed, best))


def test_images_that_no_attack_fooled_are_no_ones_fault() -> None:
    # up to 6 units: the best 2 + 6 + 6, all failed 6 + 6 + 6, this one 4 + 6 + 6
    assert exact([4, 6, INF], [2, 6, INF]) == pytest.approx(0.5)


def test_the_area_is_that_below_the_steps() -> None:
    needed = np.array([0, 2, 2, 5, INF])
    assert area_under_curve(needed, 5) == pytest.approx((2 + 2 + 5 + 5) / 5)
    steps = sum(robust_accuracy(needed, range(5)))  # of width 1 each
    assert area_under_curve(needed, 5) == pytest.approx(steps)
    assert math.isnan(area_under_curve(np.array([]), 5))
    assert area_under_curve(np.array([INF, INF]), 7) == 7
    assert area_under_curve(np.array([0.0]), 7) == 0


def test_the_best_per_image_over_attacks() -> None:
    runs = [np.array([0, 3, INF, INF]), np.array([0, 5, 2, INF])]
    assert best_per_image(runs).tolist() == [0, 3, 2, INF]
    assert largest_needed(best_per_image(runs)) == 3
    assert largest_needed(np.array([INF])) == 0


def test_excess_is_counted_up_to_what_the_hardest_image_needs() -> None:
    best = np.array([0, 2, 6, INF])
    assert excess_units(np.array([0, 5, INF, INF]), best).tolist() == [0, 3, 0, 0]
    assert largest_excess(best).tolist() == [0, 4, 0, 0]


counts = st.sampled_from([1.0, 2.0, 3.0, 9.0, INF])
tables = st.integers(1, 8).flatmap(
    lambda n: st.lists(st.lists(counts, min_size=n, max_size=n), min_size=1, max_size=4)
)


@given(tables)
def test_optimality_is_between_zero_and_one(table: list[list[float]]) -> None:
    runs = np.array(table)
    best = best_per_image(list(runs))
    for run in runs:
        found = optimality(run, best)
        assert math.isnan(found) or -1e-9 <= found <= 1 + 1e-9
    perfect = optimality(best, best)
    assert math.isnan(perfect) or perfect == pytest.approx(1)
