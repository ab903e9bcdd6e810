"""Nested dataclasses as plain data for JSON, and back.

What is not a finite number has no place in JSON: it becomes None, and comes back as NaN where the
field is a number.
"""

import math
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pinprick.errors import BadInput

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Dictionaries, lists, numbers and text alone."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def from_plain(cls: type[T], data: Any) -> T:
    """The dataclass ``cls`` that ``to_plain`` made ``data`` of."""
    known = {field.name for field in fields(cls)}  # type: ignore[arg-type]
    if not isinstance(data, dict) or set(data) != known:
        wrong = set(data) ^ known if isinstance(data, dict) else {type(data).__name__}
        raise BadInput(f"this is no {cls.__name__} as pinprick writes it: see {sorted(wrong)[:3]}")
    hints = get_type_hints(cls)
    return cls(**{name: _field(hints[name], data[name]) for name in known})


def _field(kind: Any, data: Any) -> Any:
    if isinstance(kind, UnionType):
        if data is None and NoneType in get_args(kind):
            return None
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    if is_dataclass(kind):
        return from_plain(kind, data)  # type: ignore[arg-type]
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        each = inner[:1] * len(data) if inner[1:] == (...,) else inner
        return tuple(_field(one, item) for one, item in zip(each, data, strict=True))
    if kind is float:
        return math.nan if data is None else float(data)
    return data
