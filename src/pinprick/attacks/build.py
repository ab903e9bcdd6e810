"""Attacks as plain data and back: ``build(describe(attack)) == attack``.

Plain data is what JSON and TOML hold: ``{"name": "pgd", "eps": 0.03, "steps": 20}``. Values may
also come as text from the shell ("8/255", "none", "true", "5,10"). An attack held by another nests.
Where there are presets, ``preset`` names one; settings given beside it go before the preset's.
"""

import inspect
import math
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, Literal, Union, cast

from pinprick.attacks import find_attack
from pinprick.attacks.card import Attack
from pinprick.errors import BadInput, UnknownName

_NUMBERS = (int, float, int | None, float | None, tuple[int, ...])


def build(spec: str | Mapping[str, Any]) -> Attack:
    """The attack that ``spec`` describes: a name, or a mapping of ``name`` and settings."""
    options = {"name": spec} if isinstance(spec, str) else dict(spec)
    if not isinstance(options.get("name"), str):
        raise BadInput(f"an attack is given by name, as in {{'name': 'pgd'}}; got {spec!r}")
    cls = find_attack(options.pop("name"))
    hints = typing.get_type_hints(cls)
    known = _settings(cls)
    if cls.presets and "preset" in options:
        options = {**_preset(cls, options.pop("preset")), **options}
    values = {}
    for key, value in options.items():
        if key not in known:
            raise UnknownName(f"option of {cls.card.name}", key, known)
        values[key] = read_setting(value, hints[key], f"{key} of {cls.card.name}")
    return cls(**values)


def build_quick(name: str) -> Attack:
    """The attack of this name under its quick preset, or as it is where it has none."""
    quick = "quick" in find_attack(name).presets
    return build({"name": name, "preset": "quick"} if quick else name)


def describe(attack: Attack) -> dict[str, Any]:
    """The attack as plain data, with every default spelled out."""
    settings = {key: _plain(getattr(attack, key)) for key in _settings(type(attack))}
    return {"name": attack.card.name, **settings}


def meanings(cls: type[Attack]) -> dict[str, str]:
    """What each setting means, from the docstring of the class."""
    told: dict[str, str] = {}
    names: list[str] = []
    lines = inspect.getdoc(cls) or ""
    for line in lines.partition("Attributes:\n")[2].splitlines():
        start = re.match(r"    (\w[\w, ]*): (.*)", line)
        if start is not None:
            names = start[1].split(", ")
            told |= dict.fromkeys(names, start[2])
        elif line.strip():
            told |= {name: f"{told[name]} {line.strip()}" for name in names}
    return told


def check_numbers(cls: type[Attack], settings: Mapping[str, Any]) -> None:
    """Raise ``BadInput`` where a setting is to be a number, or several, and is not."""
    hints = {key: field.type for key, field in getattr(cls, "__dataclass_fields__", {}).items()}
    for key, value in settings.items():
        hint, is_float = hints.get(key), isinstance(value, float)
        if hint not in _NUMBERS or (is_float and hint in (float, float | None)):
            continue  # a NaN is a number here, and out of every range
        what = f"{key} of {cls.card.name}"
        read = read_setting(value, hint, what)
        if isinstance(value, str) or (is_float and isinstance(read, int)):
            raise BadInput(f"{what} must be {_in_words(type(read))}, got {value!r}")


def _preset(cls: type[Attack], name: Any) -> Mapping[str, Any]:
    if name not in cls.presets:
        raise UnknownName(f"preset of {cls.card.name}", str(name), cls.presets)
    return cls.presets[name]


def _settings(cls: type[Attack]) -> list[str]:
    return [field.name for field in fields(cast(Any, cls))]


def _plain(value: Any) -> Any:
    if isinstance(value, Attack):
        return describe(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def read_setting(value: Any, hint: Any, what: str) -> Any:
    """``value`` as the type that ``hint`` asks for."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _read_union(value, arguments, what)
    if origin is Literal:
        if value not in arguments:
            raise BadInput(
                f"{what} must be one of {', '.join(map(repr, arguments))}, got {value!r}"
            )
        return value
    if origin is tuple and isinstance(value, (list, tuple, str)):
        items = value.split(",") if isinstance(value, str) else value  # "5,10" from the shell
        return tuple(read_setting(item, arguments[0], what) for item in items)
    if isinstance(hint, type) and issubclass(hint, Attack):
        return _read_attack(value, what)
    reader = {float: _read_float, int: _read_int, bool: _read_bool, str: _read_str}.get(hint)
    read = None if reader is None else reader(value)
    if read is None:
        raise BadInput(f"{what} must be {getattr(hint, '__name__', hint)}, got {value!r}")
    return read


def _read_union(value: Any, choices: tuple[Any, ...], what: str) -> Any:
    """The first reading that fits; None comes first, text last, so that "5" is a number."""
    if type(None) in choices and (value is None or value == "none"):
        return None
    rest = [choice for choice in choices if choice is not type(None)]
    for choice in sorted(rest, key=lambda choice: choice is str):
        try:
            return read_setting(value, choice, what)
        except BadInput:
            if len(rest) == 1:
                raise
    raise BadInput(f"{what} must be {' or '.join(map(_in_words, choices))}, got {value!r}")


def _in_words(hint: Any) -> str:
    """What a type takes, as a user would say it."""
    if typing.get_origin(hint) is Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    return "none" if hint is type(None) else str(getattr(hint, "__name__", hint))


def _read_attack(value: Any, what: str) -> Attack:
    if isinstance(value, Attack):
        return value
    if not isinstance(value, (str, Mapping)):
        raise BadInput(f"{what} must be an attack, by name or as a mapping, got {value!r}")
    return build(value)


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


def _read_str(value: Any) -> str | None:
    return value if isinstance(value, str) else None
