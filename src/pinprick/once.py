"""A property of a frozen value that is computed once."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from torch import Tensor

Kept = TypeVar("Kept", bound=Tensor)


class once(Generic[Kept]):
    """A tensor that is computed on first use and stored with its owner.

    Every caller gets its own copy, so an in-place change of one never reaches another. Meant for
    small tensors, such as one number per image.
    """

    def __init__(self, work: Callable[[Any], Kept]) -> None:
        self._work, self._key = work, f"_once_{work.__name__}"
        self.__doc__ = work.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> "once[Kept]": ...

    @overload
    def __get__(self, owner: object, kind: type) -> Kept: ...

    def __get__(self, owner: object | None, kind: type) -> "once[Kept] | Kept":
        if owner is None:
            return self
        stored = vars(owner)
        if self._key not in stored:
            stored[self._key] = self._work(owner)
        copy: Kept = stored[self._key].clone()
        return copy
