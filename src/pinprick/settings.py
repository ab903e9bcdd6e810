"""Settings as frozen dataclasses: their bounds stand on the fields, and nowhere else.

    @dataclass(frozen=True, kw_only=True)
    class Walk(Settings):
        steps: int = setting(100, least=1)
        size: float | None = setting(None, above=0, most=1)
        unit: Literal["elements", "pixels"] = "pixels"

The type says what a value may be: a number, one of a few words, None. ``Walk(steps=0)`` raises
``BadInput``: "Walk needs steps >= 1, got 0". Only conditions between settings need code, in
``__post_init__``.
"""

import inspect
import json
import math
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, is_dataclass
from fractions import Fraction
from typing import Any, Literal, Union, cast

from pinprick.errors import BadInput

Number = int | float

# Makes an object of a class from plain data; the text says which setting it is for.
Readers = Mapping[type, Callable[[Any, str], Any]]
_NO_READERS: Readers = {}


class Settings:
    """Base of classes of settings: values are checked before an object is made."""

    def __new__(cls, *positional: Any, **given: Any) -> "Settings":
        # The constructor refuses more values than there are names.
        names = list(types_of(cls))[: len(positional)]
        check_settings(cls, dict(zip(names, positional[: len(names)], strict=True)) | given)
        return super().__new__(cls)

    @classmethod
    def owner(cls) -> str:
        """What messages call the owner of these settings."""
        return cls.__name__

    def describe(self) -> dict[str, Any]:
        """The settings as plain data, with every default spelled out."""
        return {name: _plain(getattr(self, name)) for name in types_of(type(self))}


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The range of a number, which is always finite.

    Attributes:
        least, most: Ends that belong to the range.
        above, below: Ends that do not.
        hint: What to say to someone who is outside.
    """

    least: Number | None = None
    above: Number | None = None
    most: Number | None = None
    below: Number | None = None
    hint: str = ""

    def hold(self, number: Number) -> bool:
        """Whether the number lies in the range; NaN does not."""
        return (
            -math.inf < number < math.inf
            and (self.least is None or number >= self.least)
            and (self.above is None or number > self.above)
            and (self.most is None or number <= self.most)
            and (self.below is None or number < self.below)
        )

    def __str__(self) -> str:
        low = self.least if self.above is None else self.above
        high = self.most if self.below is None else self.below
        if low is None or high is None:
            ends = {">=": self.least, ">": self.above, "<=": self.most, "<": self.below}
            return "".join(f"{sign} {end:g}" for sign, end in ends.items() if end is not None)
        if self.above is None:
            return f"from {low:g} to {'' if self.below is None else 'below '}{high:g}"
        return f"above {low:g} and {'at most' if self.below is None else 'below'} {high:g}"


def setting(
    default: Any,
    *,
    least: Number | None = None,
    above: Number | None = None,
    most: Number | None = None,
    below: Number | None = None,
    hint: str = "",
) -> Any:
    """A dataclass field whose number, or every number of its tuple, must lie in this range."""
    bounds = Bounds(least=least, above=above, most=most, below=below, hint=hint)
    return field(default=default, metadata={"bounds": bounds})


def pixel_distance(default: float | None) -> Any:
    """A field for a radius or a step, where pixel values run from 0 to 1."""
    hint = "pixel values run from 0 to 1, so 8 of 255 levels are 8/255"
    return setting(default, above=0, most=1, hint=hint)


def types_of(cls: type) -> dict[str, Any]:
    """The settings of a class by name, with their types."""
    found = {name: one.type for name, one in _fields(cls).items()}
    if any(isinstance(hint, str) for hint in found.values()):  # annotations kept as text
        hints = typing.get_type_hints(cls)
        return {name: hints[name] for name in found}
    return found


def bounds_of(cls: type) -> dict[str, Bounds]:
    """The bounds of the settings that have some."""
    found = {name: one.metadata.get("bounds") for name, one in _fields(cls).items()}
    return {name: bounds for name, bounds in found.items() if bounds is not None}


def ranges_of(cls: type) -> dict[str, str]:
    """What every setting may be, in words."""
    bounds = bounds_of(cls)
    return {name: _in_words(hint, bounds.get(name)) for name, hint in types_of(cls).items()}


def meanings_of(cls: type) -> dict[str, str]:
    """What each setting means, from the docstring of the class."""
    return read_section(inspect.getdoc(cls) or "", "Attributes")


def read_section(doc: str, title: str) -> dict[str, str]:
    """What a docstring says of each name under this title; several names may share a line."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in doc.partition(f"{title}:\n")[2].splitlines():
        start = re.match(r"    (\w[\w, ]*): (.*)", line)
        if start is not None:
            names = start[1].split(", ")
            found |= dict.fromkeys(names, start[2])
        elif line.startswith(" "):
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
        elif line:
            break  # the next section
    return found


def check_settings(cls: type[Settings], given: Mapping[str, Any]) -> None:
    """Raise ``BadInput`` for the first value of a wrong type or outside its bounds."""
    hints, bounds = types_of(cls), bounds_of(cls)
    for name, value in given.items():
        if name not in hints:
            continue  # the constructor refuses it
        hint, limits = hints[name], bounds.get(name)
        if type(value) not in _members(hint):
            what = f"{name} of {cls.owner()}"
            if not _as_given(value, read_value(value, hint, what)):
                raise BadInput(f"{what} must be {_in_words(hint)}, got {value!r}")
        if limits is not None and not all(map(limits.hold, _numbers(value))):
            shown = f"{value:g}" if isinstance(value, float) else value
            line = f"{cls.owner()} needs {name} {_in_words(hint, limits)}, got {shown}"
            raise BadInput(f"{line}; {limits.hint}" if limits.hint else line)


def check_choice(what: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise ``BadInput`` unless the value is one of a few."""
    if value not in choices:
        raise BadInput(f"{what} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def read_value(value: Any, hint: Any, what: str, readers: Readers = _NO_READERS) -> Any:
    """The value as its type asks for it, from plain data or text.

    Args:
        value: Plain data, or text such as "8/255", "none", "true", "5,10" or "[[0, 1], [1, 0]]".
        hint: The type of the setting.
        what: How a message names it.
        readers: Ways to make objects of other classes.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _read_union(value, hint, what, readers)
    if origin is Literal:
        check_choice(what, value, arguments)
        return value
    if origin is tuple:
        items = _items(value)
        if items is None:
            raise BadInput(f"{what} must be {_in_words(hint)}, got {value!r}")
        return tuple(read_value(item, arguments[0], what, readers) for item in items)
    if hint is Any or not isinstance(hint, type) or origin is not None:
        return value  # a type that nothing is known about
    makers = [make for kind, make in readers.items() if issubclass(hint, kind)]
    if makers and not isinstance(value, hint):
        return makers[0](value, what)
    read = _BASIC[hint](value) if hint in _BASIC else value if isinstance(value, hint) else None
    if read is None:
        raise BadInput(f"{what} must be {_in_words(hint)}, got {value!r}")
    return read


def _fields(cls: type) -> dict[str, Field[Any]]:
    found = fields(cast(Any, cls)) if is_dataclass(cls) else ()
    return {one.name: one for one in found}


def _members(hint: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(hint) in (Union, types.UnionType)
    return typing.get_args(hint) if is_union else (hint,)


def _in_words(hint: Any, bounds: Bounds | None = None) -> str:
    """What a type takes, within its bounds, as a user would say it."""
    words: list[str] = []
    for member in _members(hint):
        if typing.get_origin(member) is Literal:
            words += map(repr, typing.get_args(member))
        elif member is type(None):
            words.append("none")
        else:
            words.append(str(bounds or getattr(member, "__name__", member)))
    return (", or " if bounds else " or ").join(words)


def _numbers(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in _numbers(item)]
    return [] if value is None or isinstance(value, (str, bool)) else [value]


def _as_given(value: Any, read: Any) -> bool:
    """Whether a value was of its type before it was read: no text for a number, no 2.0 for 2."""
    if isinstance(value, (list, tuple)):
        return all(map(_as_given, value, read))
    return isinstance(read, str) or not (
        isinstance(value, str) or (isinstance(value, float) and isinstance(read, int))
    )


def _read_union(value: Any, hint: Any, what: str, readers: Readers) -> Any:
    """The first reading that fits; None comes first, text last, so that "5" is a number."""
    members = _members(hint)
    if type(None) in members and (value is None or value == "none"):
        return None
    rest = [member for member in members if member is not type(None)]
    for member in sorted(rest, key=lambda member: member is str):
        try:
            return read_value(value, member, what, readers)
        except BadInput:
            if len(rest) == 1:
                raise
    raise BadInput(f"{what} must be {_in_words(hint)}, got {value!r}")


def _items(value: Any) -> Sequence[Any] | None:
    """The items of a list, which may be text; None if it is no list."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, str):
        return value.split(",")
    return value if isinstance(value, (list, tuple)) else None


def _read_float(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        is_fraction = isinstance(value, str) and "/" in value
        number = float(Fraction(value)) if is_fraction else float(value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    return None if math.isnan(number) else number  # NaN equals nothing, itself included


def _read_int(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value  # exact, however large
    number = _read_float(value)
    return int(number) if number is not None and number.is_integer() else None


def _read_bool(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "yes": True, "false": False, "no": False}.get(str(value).lower())


_BASIC: dict[type, Callable[[Any], Any]] = {float: _read_float, int: _read_int, bool: _read_bool}


def _plain(value: Any) -> Any:
    if isinstance(value, Settings):
        return value.describe()
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
