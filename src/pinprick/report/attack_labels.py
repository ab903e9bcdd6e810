"""Short names for attacks: the name, and the settings in which attacks of one name differ."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def attack_labels(attacks: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], str]:
    """The label of each attack, by all values that describe it.

    Args:
        attacks: Descriptions with the same keys: ``attack`` is the name, ``settings`` all settings
            as JSON; further keys, such as ``revision``, are part of a label where they differ.
    """
    labels = {}
    for description in attacks:
        alike = [other for other in attacks if other["attack"] == description["attack"]]
        flat = [_flat(other) for other in alike]
        own = _flat(description)
        differ = [key for key in own if any(other.get(key, None) != own[key] for other in flat)]
        words = [f"{key}={_value(own[key])}" for key in differ if own[key] is not None]
        name = str(description["attack"])
        labels[tuple(description.values())] = f"{name} {' '.join(words)}" if words else name
    return labels


def _flat(description: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in description.items() if key not in ("attack", "settings")}
    settings = json.loads(description["settings"])
    return {**{key: value for key, value in settings.items() if key != "name"}, **rest}


def _value(value: Any) -> str:
    """Text as it is, a hash by its first digits, and all else as JSON."""
    return value[:12] if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
