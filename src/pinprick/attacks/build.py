"""Attacks as plain data and back: ``build(describe(attack)) == attack``.

Plain data is what JSON and TOML hold: ``{"name": "pgd", "eps": 0.03, "steps": 20}``. Values may
also come as text from the shell ("8/255", "none", "true", "5,10"). An attack held by another nests;
as text it is its name, or JSON.
``preset`` names a preset, if there are any; settings given beside it override the preset's. An
attack outside this package goes by ``package.module:Class`` or ``file.py:Class``, and building it
runs that code.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from pinprick.attacks import find_attack
from pinprick.attacks.card import Attack
from pinprick.errors import BadInput, UnknownName
from pinprick.json_text import read_json
from pinprick.metrics.unit import Unit, check_unit
from pinprick.settings import Settings, read_value, types_of


def build(spec: str | Mapping[str, Any]) -> Attack:
    """The attack that ``spec`` describes: a name, or a mapping of ``name`` and settings."""
    options = {"name": spec} if isinstance(spec, str) else dict(spec)
    if not isinstance(options.get("name"), str):
        raise BadInput(f"an attack is given by name, as in {{'name': 'pgd'}}; got {spec!r}")
    cls = find_attack(options.pop("name"))
    if cls.presets and "preset" in options:
        options = {**_preset(cls, options.pop("preset")), **options}
    hints, values = types_of(cls), {}
    for key, value in options.items():
        if key not in hints:
            raise UnknownName(f"option of {cls.card.name}", key, hints)
        what = f"{key} of {cls.card.name}"
        values[key] = read_value(value, hints[key], what, {Attack: _read_attack})
    return cls(**values)


def build_quick(name: str) -> Attack:
    """The attack of this name under its quick preset, or as it is where it has none."""
    quick = "quick" in find_attack(name).presets
    return build({"name": name, "preset": "quick"} if quick else name)


def with_unit(attack: Attack, unit: Unit) -> Attack:
    """The attack counting this unit; the attack itself if its settings leave no choice."""
    check_unit(unit)
    if attack.facts().unit is None or "unit" not in types_of(type(attack)):
        return attack
    return cast(Attack, replace(cast(Any, attack), unit=unit))


def describe(attack: Attack) -> dict[str, Any]:
    """The attack as plain data, with every default spelled out."""
    return attack.describe()


def all_settings(attack: Attack) -> dict[str, Any]:
    """What ``describe`` gives, with settings that it leaves out where they have no effect."""
    return {**attack.describe(), **Settings.describe(attack)}


def _preset(cls: type[Attack], name: Any) -> Mapping[str, Any]:
    if name not in cls.presets:
        raise UnknownName(f"preset of {cls.card.name}", str(name), cls.presets)
    return cls.presets[name]


def _read_attack(value: Any, what: str) -> Attack:
    if isinstance(value, str) and value.startswith("{"):
        value = read_json(value, what)
    if not isinstance(value, (str, Mapping)):
        raise BadInput(f"{what} must be an attack, by name or as a mapping, got {value!r}")
    return build(value)
