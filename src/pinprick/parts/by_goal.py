"""Settings whose published value depends on the goal."""

from typing import TypeVar

from pinprick.goal import Goal

_Value = TypeVar("_Value", int, float)


def by_goal(given: _Value | None, goal: Goal, *, label: _Value, target: _Value) -> _Value:
    """What was given, or else the value for leaving a label or for reaching a target."""
    if given is not None:
        return given
    return label if goal.targets is None else target
