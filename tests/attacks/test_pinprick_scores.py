"""The search by scores alone at the end of Pinprick."""

from typing import Any

import pytest
import torch
from grey_images import grey
from torch import Tensor

from pinprick import Problem
from pinprick.attacks import SparseRS
from pinprick.attacks.pinprick import score_search
from pinprick.attacks.pinprick.score_search import ScoreSearch
from pinprick.parts.best import Best
from pinprick.parts.units import Units

ELEMENTS = Units("elements")


def turns_of(
    cost: list[float], passes: int, *, stop_at: int = 1, most: int = 1000
) -> list[tuple[int, list[int]]]:
    """The turns of a search by scores, each of which takes at most ``most`` of its passes."""
    problem = grey(len(cost))
    best = Best(problem.images)
    best.cost = torch.tensor(cost, dtype=torch.float32)
    work = ScoreSearch(problem, best, ELEMENTS, stop_at=stop_at)
    seen = []

    def take(rows: Tensor, size: int, turn: int) -> None:
        seen.extend([(size, rows.tolist())] if len(rows) else [])
        problem.tally.forwards[rows] += min(size, most)

    setattr(work, "_take_turn", take)  # noqa: B010
    work.run(passes)
    return seen


def test_a_turn_is_a_third_of_the_passes_or_a_part_of_that_where_fewer_are_left() -> None:
    assert turns_of([5], 81) == [(27, [0])] * 3
    assert turns_of([5], 81, most=20) == [(27, [0])] * 3 + [(9, [0])] * 2
    sizes = {1: [1], 3: [1], 71: [23], 72: [24, 8], 700: [233, 77, 25, 8]}
    assert {passes: score_search._sizes(passes) for passes in sizes} == sizes


def test_an_image_with_few_enough_units_takes_no_turn() -> None:
    assert turns_of([3, 4, torch.inf], 3, stop_at=3) == [(1, [1, 2])] * 3


def test_units_are_removed_until_each_is_needed_and_then_swapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first image has been fooled by two units, the second one by none."""
    problem = grey(2)
    best = Best(problem.images)
    best.cost = torch.tensor([2.0, torch.inf])
    calls: list[tuple[Any, ...]] = []
    left = iter((1, 0))  # units that may still be removed

    def remove(part: Problem, found: Best, units: Units, passes: int) -> Tensor:
        calls.append(("remove", part._rows.tolist()))
        problem.tally.forwards[part._rows] += passes
        return torch.full((len(part),), next(left))

    def swap(
        self: SparseRS, part: Problem, k: Tensor, near: Tensor, trial: int
    ) -> tuple[Tensor, Tensor]:
        calls.append(("swap", part._rows.tolist(), k.tolist(), trial, self.queries))
        problem.tally.forwards[part._rows] += int(self.queries or 0)
        return part.images, torch.zeros(len(part), dtype=torch.bool)

    monkeypatch.setattr(score_search, "remove_units", remove)
    monkeypatch.setattr(SparseRS, "search", swap)
    ScoreSearch(problem, best, ELEMENTS, stop_at=1).run(30)
    assert calls == [
        ("remove", [0]),
        ("swap", [1], [25], 0, 10),
        ("remove", [0]),
        ("swap", [1], [25], 1, 10),
        ("swap", [0, 1], [1, 25], 2, 10),
    ]
