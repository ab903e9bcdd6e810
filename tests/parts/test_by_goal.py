"""Settings whose default depends on the goal."""

import torch

from pinprick import Goal
from pinprick.parts.score_loss import by_goal

LEAVE, REACH = (
    Goal(torch.zeros(2, dtype=torch.long)),
    Goal(torch.zeros(2).long(), torch.ones(2).long()),
)


def test_the_goal_decides_where_nothing_is_given() -> None:
    assert by_goal(None, LEAVE, label=3, target=7) == 3
    assert by_goal(None, REACH, label=3, target=7) == 7


def test_what_is_given_is_taken_for_either_goal() -> None:
    assert by_goal(0.0, LEAVE, label=0.4, target=0.2) == 0.0
    assert by_goal(0.5, REACH, label=0.4, target=0.2) == 0.5
