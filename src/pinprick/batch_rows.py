"""Values with one row per image: choose rows, move to a device, join batches.

A class that derives from ``BatchRows`` need not say how each attribute is cut:

    tensor               one row per image, along its first dimension
    tuple                one entry per image, or none at all
    another BatchRows    cut by itself, also as a value of a dict
    anything else        shared by all images
"""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import chain
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from pinprick.types import Rows

_PLAIN = {type(None), bool, int, float, str}  # never cut; most attributes, so looked at first


Same = TypeVar("Same", bound="BatchRows")  # shape checks by function cannot read typing.Self


class BatchRows:
    """A dataclass or a plain object that can be cut, moved and joined by row.

    ``SHARED`` names attributes that are the same for all images although they are tensors or
    tuples. What a cached property stored is left behind.
    """

    SHARED: ClassVar[tuple[str, ...]] = ()

    def __getitem__(self: Same, rows: Rows | slice) -> Same:
        """The same for some of the images, or for several copies of them."""
        if isinstance(rows, Tensor) and rows.dtype == torch.bool:
            rows = rows.nonzero().squeeze(1)  # once, since this waits for a GPU
        attributes = self.attributes()
        for name, value in attributes.items():
            if type(value) not in _PLAIN and name not in self.SHARED:
                attributes[name] = _cut(value, rows)
        return self._with(attributes)

    def to(self: Same, device: torch.device | str) -> Same:
        """The same with all tensors on ``device``."""
        attributes = self.attributes()
        return self._with({name: _move(value, device) for name, value in attributes.items()})

    @classmethod
    def join(cls: type[Same], parts: Sequence[Same]) -> Same:
        """The rows of all parts, in order; a field that is None in one part is None.

        What all images share comes from the first part.
        """
        columns = [part.attributes() for part in parts]
        joined = columns[0] | {
            name: _join([column[name] for column in columns])
            for name in columns[0]
            if name not in cls.SHARED
        }
        return parts[0]._with(joined)

    def attributes(self) -> dict[str, Any]:
        """The fields by name, without computed values."""
        kind: Any = type(self)
        names, stored = _field_names(kind), vars(self)
        return stored.copy() if names is None else {name: stored[name] for name in names}

    def tensors(self) -> dict[str, Tensor]:
        """The fields that are tensors, by name."""
        found = self.attributes().items()
        return {name: value for name, value in found if isinstance(value, Tensor)}

    def _with(self: Same, attributes: dict[str, Any]) -> Same:
        """Another object of the same class, without running ``__init__`` again."""
        other = object.__new__(type(self))
        other.__dict__.update(attributes)
        return other


@cache
def _field_names(cls: Any) -> tuple[str, ...] | None:
    return tuple(each.name for each in fields(cls)) if is_dataclass(cls) else None


def _cut(value: Any, rows: Rows | slice) -> Any:
    if isinstance(value, (Tensor, BatchRows)):
        return value[rows]
    if type(value) is tuple and value:  # a NamedTuple is one value
        return value[rows] if isinstance(rows, slice) else tuple(value[i] for i in rows.tolist())
    if _by_name(value):
        return {name: each[rows] for name, each in value.items()}
    return value


def _move(value: Any, device: torch.device | str) -> Any:
    if isinstance(value, (Tensor, BatchRows)):
        return value.to(device)
    if _by_name(value):
        return {name: each.to(device) for name, each in value.items()}
    return value


def _join(values: list[Any]) -> Any:
    first = values[0]
    if any(value is None for value in values):
        return None
    if isinstance(first, Tensor):
        return torch.cat(values)
    if isinstance(first, BatchRows):
        return type(first).join(values)
    if type(first) is tuple:
        return tuple(chain.from_iterable(values))
    if _by_name(first):
        return {name: _join([value[name] for value in values]) for name in first}
    return first


def _by_name(value: Any) -> bool:
    """Whether this is a dict of values with rows."""
    return type(value) is dict and any(isinstance(each, BatchRows) for each in value.values())
