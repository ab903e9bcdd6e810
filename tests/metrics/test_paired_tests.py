"""Paired tests against hand-worked cases and scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from pinprick.metrics.paired_tests import holm, mcnemar, wilcoxon

pytestmark = pytest.mark.plain  # whole numbers where hints say float

INF = math.inf


def fooled(
    only_first: int, only_second: int, both: int = 0, none: int = 0
) -> tuple["np.typing.NDArray[np.bool_]", "np.typing.NDArray[np.bool_]"]:
    counts = (only_first, only_second, both, none)
    return np.repeat([True, False, True, False], counts), np.repeat(
        [False, True, True, False], counts
    )


def test_mcnemar_by_hand() -> None:
    assert mcnemar(*fooled(10, 2)) == pytest.approx(2 * (1 + 12 + 66) / 4096)
    assert mcnemar(*fooled(10, 2, both=50, none=7)) == mcnemar(*fooled(2, 10))
    assert mcnemar(*fooled(3, 3)) == 1.0
    assert mcnemar(*fooled(0, 0, both=4)) == 1.0
    assert mcnemar(*fooled(1, 0)) == 1.0
    assert mcnemar(*fooled(0, 6)) == pytest.approx(2 / 64)


@pytest.mark.parametrize(("first", "second"), [(40, 17), (5000, 4800)])
def test_mcnemar_is_a_test_of_a_coin(first: int, second: int) -> None:
    expected = stats.binomtest(first, first + second).pvalue
    assert mcnemar(*fooled(first, second)) == pytest.approx(expected, rel=1e-9)


def test_wilcoxon_by_hand() -> None:
    def p(first: list[float], second: list[float]) -> float:
        return wilcoxon(np.array(first, dtype=float), np.array(second, dtype=float))

    assert p([1, 2, 3], [2, 4, 6]) == pytest.approx(2 / 8)  # all three the same way
    assert p([1, 2, 3], [1, 2, 3]) == 1.0
    assert p([1, 2, 3, 9], [2, 4, 6, 9]) == p([2, 4, 6], [1, 2, 3])  # a tie is left out
    # differences 1, 1, -1 share the rank 2: sums 0, 2, 2, 2, 4, 4, 4, 6, and 2 was seen
    assert p([1, 1, 2], [2, 2, 1]) == 1.0
    # differences -1, 2, 3: of 8 sums of ranks two are at most 1
    assert p([2, 1, 1], [1, 3, 4]) == pytest.approx(4 / 8)
    assert p([5], [7]) == 1.0


def test_a_failure_is_worse_than_every_success() -> None:
    def p(*pairs: tuple[float, float]) -> float:
        first, second = zip(*pairs, strict=True)
        return wilcoxon(np.array(first, dtype=float), np.array(second, dtype=float))

    assert p((INF, INF), (INF, INF)) == 1.0
    assert p((1, INF), (2, INF), (9, 8)) == p((1, 100), (2, 101), (9, 8))
    assert p((1, INF), (INF, 1), (3, 4)) == 1.0
    assert p(*[(1, INF)] * 6) == pytest.approx(2 / 64)


@pytest.mark.parametrize("n", [8, 50])
def test_wilcoxon_without_ties_agrees_with_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    first, second = rng.random(n), rng.random(n) + 0.1
    expected = stats.wilcoxon(first, second, method="exact").pvalue
    assert wilcoxon(first, second) == pytest.approx(expected, rel=1e-9)


def test_wilcoxon_of_many_images_agrees_with_scipy_with_ties() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(1, 9, 400).astype(float), rng.integers(1, 10, 400).astype(float)
    expected = stats.wilcoxon(first, second, method="asymptotic").pvalue
    assert wilcoxon(first, second) == pytest.approx(expected, rel=1e-9)


def test_the_exact_and_the_normal_p_value_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    first, second = rng.integers(1, 9, 90).astype(float), rng.integers(1, 10, 90).astype(float)
    exact = wilcoxon(first, second)
    monkeypatch.setattr("pinprick.metrics.paired_tests._EXACT", 0)
    assert wilcoxon(first, second) == pytest.approx(exact, rel=0.05)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.04]) == [0.04]
    assert holm([]) == []
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([0.02, 0.02]) == [0.04, 0.04]
