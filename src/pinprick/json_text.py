"""JSON: text from elsewhere checked while it is read, and dataclasses as plain data and back.

Python's own reader raises several kinds of errors, and recurses without limit. It also accepts NaN
and 1e999, which no JSON file can hold.
"""

import json
import math
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pinprick.errors import BadInput
from pinprick.files import reading

_MAX_LEVELS = 64  # writing, copying and printing recurse
_MAX_BYTES = 16_000_000  # lists in memory are some twenty times as large

T = TypeVar("T")


def read_json(
    text: str | bytes, where: str, *, finite: bool = False, largest: int = _MAX_BYTES
) -> Any:
    """The value that ``text`` holds, or ``BadInput`` with the reason.

    Args:
        text: JSON.
        where: The file, or the part of it, that the text is from, for the message.
        finite: Refuse numbers that are not finite, and text that cannot be printed.
        largest: The most bytes, or characters, that are read.
    """
    if len(text) > largest:
        raise BadInput(_too_large(where, len(text), largest))
    try:
        value = json.loads(text)
    except RecursionError:
        raise BadInput(_too_deep(where)) from None
    except ValueError as error:  # also bytes that are no UTF-8, and numbers of too many digits
        raise BadInput(f"{where} is not JSON: {error}") from None
    _check(value, where, finite=finite)
    return value


def read_json_file(path: Path, *, finite: bool = False) -> Any:
    """The value in the file at ``path``, which has at most 16 MB."""
    with reading(path):
        size = path.stat().st_size
        if size > _MAX_BYTES:
            raise BadInput(_too_large(str(path), size, _MAX_BYTES))
        content = path.read_bytes()
    return read_json(content, str(path), finite=finite)


def _check(value: Any, where: str, *, finite: bool) -> None:
    """Check a value level by level, without recursion."""
    level = [value]
    for _ in range(_MAX_LEVELS):
        if finite:
            for item in level:
                _check_finite(item, where)
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += [*item.keys(), *item.values()]
            elif isinstance(item, list):
                below += item
        if not below:
            return
        level = below
    raise BadInput(_too_deep(where))


def _check_finite(item: Any, where: str) -> None:
    if isinstance(item, float) and not math.isfinite(item):
        raise BadInput(f"{where} holds the number {item}; numbers must be finite")
    if isinstance(item, str) and not item.isascii():
        try:
            item.encode()
        except UnicodeEncodeError:
            raise BadInput(f"{where} holds text that is no Unicode: {ascii(item)[:60]}") from None


def _too_large(where: str, size: int, largest: int) -> str:
    return f"{where} has {size} bytes; at most {largest} are read as JSON"


def _too_deep(where: str) -> str:
    return f"{where} is nested too deeply; at most {_MAX_LEVELS} levels are read"


def to_plain(value: Any) -> Any:
    """Nested dataclasses as dictionaries, lists, numbers and text; NaN and infinity are None."""
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
    """The dataclass ``cls`` that ``to_plain`` made ``data`` of; None is NaN in a float field."""
    known = {field.name for field in fields(cls)}  # type: ignore[arg-type]
    if not isinstance(data, dict) or set(data) != known:
        wrong = set(data) ^ known if isinstance(data, dict) else {type(data).__name__}
        raise BadInput(f"this is no {cls.__name__} as pinprick writes it: see {sorted(wrong)[:3]}")
    hints = get_type_hints(cls)
    return cls(**{name: _field_from_plain(hints[name], data[name]) for name in known})


def _field_from_plain(kind: Any, data: Any) -> Any:
    if isinstance(kind, UnionType):
        if data is None and NoneType in get_args(kind):
            return None
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    if is_dataclass(kind):
        return from_plain(kind, data)  # type: ignore[arg-type]
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        each = inner[:1] * len(data) if inner[1:] == (...,) else inner
        return tuple(_field_from_plain(one, item) for one, item in zip(each, data, strict=True))
    if kind is float:
        return math.nan if data is None else float(data)
    return data
