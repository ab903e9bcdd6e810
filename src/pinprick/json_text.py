"""JSON that somebody else wrote: a value, or one line that says why there is none.

Python's own reader raises several kinds of errors, and one of them only where a value is nested
so deeply that its recursion ends. It also reads NaN and 1e999, which no JSON file can hold again.
"""

import json
import math
from pathlib import Path
from typing import Any

from pinprick.errors import BadInput

_DEEPEST = 64  # levels; what is deeper would stop whoever writes, copies or prints it
_LARGEST = 16_000_000  # bytes of a file; lists in memory are some twenty times as large


def read_json(
    text: str | bytes, where: str, *, finite: bool = False, largest: int = _LARGEST
) -> Any:
    """The value that ``text`` holds; ``where`` it was found is said when it holds none.

    Args:
        text: JSON.
        where: The name of the file, or of its part, for the message.
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
    try:
        size = path.stat().st_size
        if size > _LARGEST:
            raise BadInput(_too_large(str(path), size, _LARGEST))
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}") from None
    return read_json(content, str(path), finite=finite)


def _check(value: Any, where: str, *, finite: bool) -> None:
    """Walk through the value level by level, without recursion."""
    level = [value]
    for _ in range(_DEEPEST):
        if finite:
            for one in level:
                _check_one(one, where)
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += [*one.keys(), *one.values()]
            elif isinstance(one, list):
                below += one
        if not below:
            return
        level = below
    raise BadInput(_too_deep(where))


def _check_one(one: Any, where: str) -> None:
    if isinstance(one, float) and not math.isfinite(one):
        raise BadInput(f"{where} holds the number {one}; numbers must be finite")
    if isinstance(one, str) and not one.isascii():
        try:
            one.encode()
        except UnicodeEncodeError:
            raise BadInput(f"{where} holds text that is no Unicode: {ascii(one)[:60]}") from None


def _too_large(where: str, size: int, largest: int) -> str:
    return f"{where} has {size} bytes; at most {largest} are read as JSON"


def _too_deep(where: str) -> str:
    return f"{where} is nested too deeply; at most {_DEEPEST} levels are read"
