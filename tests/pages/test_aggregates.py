"""The numbers behind the plots, worked by hand."""

import math

import numpy as np
import pytest

from pinprick.metrics.outcomes import Outcomes
from pinprick.metrics.wilson import wilson_interval
from pinprick.pages.aggregates import (
    accuracy_curves,
    attack_line,
    cost_series,
    points_per_curve,
    query_curves,
    summarise_attacks,
    transfer_map,
)
from pinprick.pages.report_parts import ReportRun, Steps, Task


def run(
    *pixels: float, wrong: int = 0, seed: int = 0, steps: Steps | None = None, attack: str = "pin"
) -> ReportRun:
    """One image per number of needed pixels, with three elements each; the last are wrong."""
    needed = np.array(pixels, dtype=np.float64)
    correct = np.arange(len(needed)) < len(needed) - wrong
    return ReportRun(
        task=Task("net", "data", "untargeted"),
        attack=attack,
        settings={},
        seed=seed,
        images=tuple(f"image {number}" for number in range(len(needed))),
        outcomes=Outcomes(
            correct=correct,
            answered=np.ones_like(correct),
            attacked=correct,
            pixels=needed,
            elements=3 * needed,
            forwards=np.full(len(needed), 10),
            backwards=np.full(len(needed), 5),
            seconds=2.0,
        ),
        first_success=np.where(np.isfinite(needed), 2 * needed, np.inf),
        lost_as_png=np.zeros(len(needed), dtype=bool),
        steps=steps,
    )


def test_robust_accuracy_falls_where_images_are_fooled() -> None:
    ((curve),) = accuracy_curves({"pin": [run(1, 4, math.inf, 0, wrong=1)]}, "pixels", 100)
    assert [point[:2] for point in curve["points"]] == [[0, 0.75], [1, 0.5], [4, 0.25]]
    low, high = wilson_interval(3, 4)
    assert curve["points"][0][2:] == pytest.approx([low, high], rel=1e-4)
    (towards,) = accuracy_curves({"pin": [run(1, math.inf, 7, wrong=1)]}, "pixels", 100)
    assert [point[1] for point in towards["points"]] == pytest.approx([2 / 3, 1 / 3], rel=1e-4)
    (elements,) = accuracy_curves({"pin": [run(1, 4)]}, "elements", 100)
    assert [point[0] for point in elements["points"]] == [0, 3, 12]


def test_a_curve_of_several_seeds_is_their_mean_with_the_interval_of_one() -> None:
    (curve,) = accuracy_curves({"pin": [run(1, 9), run(3, 9, seed=1)]}, "pixels", 100)
    assert [point[:2] for point in curve["points"]] == [[0, 1.0], [1, 0.75], [3, 0.5], [9, 0.0]]
    assert curve["points"][2][2:] == pytest.approx(list(wilson_interval(1, 2)), rel=1e-4)


def test_a_long_curve_keeps_its_ends() -> None:
    (curve,) = accuracy_curves({"pin": [run(*range(1, 501))]}, "pixels", 20)
    assert len(curve["points"]) == 20
    assert (curve["points"][0][0], curve["points"][-1][0]) == (0, 500)
    assert points_per_curve(3) == 150
    assert points_per_curve(10_000) == 24


def test_queries_are_over_correct_images_and_need_a_trace() -> None:
    known, unknown = run(1, 3, math.inf, 0, wrong=1), run(1, 3)
    unknown.first_success[0] = math.nan
    (curve,) = query_curves({"pin": [known], "other": [unknown]}, 100)
    assert curve["attack"] == "pin"
    assert [point[:2] for point in curve["points"]] == [
        [0, 0.0],
        [2, pytest.approx(1 / 3, rel=1e-4)],
        [6, pytest.approx(2 / 3, rel=1e-4)],
    ]


def test_attacks_are_in_the_order_of_their_medians_and_failures_are_infinite() -> None:
    attacks = {"weak": [run(math.inf, math.inf, 2)], "few": [run(1, 2, 2)], "many": [run(5, 5, 5)]}
    summaries = summarise_attacks(attacks)
    assert list(summaries) == ["few", "many", "weak"]
    line = attack_line(summaries["weak"], attacks["weak"])
    assert (line["fooled"], line["correct"]) == (1, 3)
    assert line["median_pixels"][0] is None
    assert (line["forwards"], line["backwards"]) == (10, 5)


def test_the_best_so_far_is_a_median_over_correct_images() -> None:
    steps = Steps(
        image=np.array([0, 0, 1, 2]),
        passes=np.array([1, 4, 1, 4]),
        pixels=np.array([9.0, 2.0, 5.0, 7.0]),
        elements=np.array([27.0, 6.0, 15.0, 21.0]),
    )
    attacks = {"pin": [run(2, 5, 7, steps=steps)]}
    (series,) = cost_series(attacks, summarise_attacks(attacks), "pixels")
    assert series["line"] == [[1, 9.0], [4, 5.0]]  # of 9, 5 and none; then of 2, 5 and 7
    assert series["dots"] == [[15, 2], [15, 5], [15, 7]]
    assert series["passes"] == 15
    (elements,) = cost_series(attacks, summarise_attacks(attacks), "elements")
    assert elements["line"] == [[1, 27.0], [4, 15.0]]


def test_an_attack_without_any_image_has_no_numbers() -> None:
    attacks = {"pin": [run(1)], "broken": [run()]}
    summaries = summarise_attacks(attacks)
    assert list(summaries) == ["pin", "broken"]
    line = attack_line(summaries["broken"], attacks["broken"])
    assert line["fooling_rate"] == [None, None, None]
    assert accuracy_curves({"broken": attacks["broken"]}, "pixels", 9)[0]["points"] == []
    assert cost_series(attacks, summaries, "pixels")[1]["dots"] == []


def test_the_transfer_map_has_a_gap_where_nobody_judged() -> None:
    from pinprick.metrics.estimate import Estimate

    def line(model: str, victim: str, rate: float) -> dict[str, object]:
        return {
            **{"attack": "pin", "model": model, "data": "d", "goal": "untargeted"},
            **{"victim": victim, "seeds": 1, "images": 8, "clean_error": 0.1},
            "fooling_rate": Estimate(rate, 0.0, 1.0, math.nan),
        }

    found = transfer_map([line("a", "b", 0.5), line("b", "a", 0.25)])
    assert found is not None
    assert found["victims"] == ["a", "b"]
    assert found["sources"] == [["pin", "a", "d", "untargeted"], ["pin", "b", "d", "untargeted"]]
    assert found["cells"][0] == [None, {"rate": [0.5, 0.0, 1.0], "images": 8, "floor": 0.1}]
    assert transfer_map([]) is None
