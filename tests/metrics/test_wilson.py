"""The Wilson interval against figures worked out by hand."""

import math

import pytest

from pinprick.metrics.wilson import wilson_interval

pytestmark = pytest.mark.plain  # whole numbers where hints say float


@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [(980, 1000, 0.969, 0.987), (450, 1000, 0.419, 0.481), (100, 100, 0.963, 1.0)],
)
def test_agrees_with_the_usual_examples(count: int, n: int, low: float, high: float) -> None:
    assert wilson_interval(count, n) == pytest.approx((low, high), abs=5e-4)


def test_one_image_says_little_and_no_image_nothing() -> None:
    assert wilson_interval(1, 1) == pytest.approx((0.2065, 1.0), abs=1e-4)
    assert wilson_interval(0, 1) == pytest.approx((0.0, 0.7935), abs=1e-4)
    assert all(map(math.isnan, wilson_interval(0, 0)))


def test_the_bounds_are_exact_at_the_ends() -> None:
    for n in range(1, 200):
        assert wilson_interval(n, n).high == 1.0
        assert wilson_interval(0, n).low == 0.0


def test_a_higher_level_is_wider() -> None:
    assert wilson_interval(5, 10, level=0.99).low < wilson_interval(5, 10).low
