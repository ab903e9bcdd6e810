"""The state of a search that goes on with some of its images."""

from typing import TypeVar

from torch import Tensor

from pinprick.types import Rows

State = TypeVar("State")


def cut_state(state: State, rows: Rows, *parts: str) -> State:
    """A copy of ``state`` for some of its images.

    All of its tensors are cut, and its ``parts``, which know how to cut themselves; the rest is
    the same for all images.
    """
    cut = object.__new__(type(state))
    for name, value in vars(state).items():
        own = isinstance(value, Tensor) or name in parts
        cut.__dict__[name] = value[rows] if own else value
    return cut
