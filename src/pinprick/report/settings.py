"""The settings of an attack in a few words, so that a table says what was run."""

from typing import Any

from pinprick.attacks.build import describe
from pinprick.attacks.card import Attack

_ALWAYS = {"pgd0": ("step_size",)}  # said also at the default: it decides how good the attack is


def settings_in_words(attack: Attack) -> str:
    """What is not the attack's default, as the shell takes it; its k too where that is fixed.

    A few attacks always say a setting more.

    A preset stands for its settings where that is shorter: "preset=quick, k=50".
    """
    own, usual = describe(attack), describe(type(attack)())
    said = _ALWAYS.get(attack.card.name, ())
    if "k" in own and attack.facts().kind == "budget":
        said = ("k", *said)
    unlike = dict.fromkeys(said)  # so that they are said
    usual |= unlike
    ways = [
        [f"preset={name}", *_other(own, usual | dict(preset) | unlike)]
        for name, preset in attack.presets.items()
    ]
    shortest = min([*ways, _other(own, usual)], key=lambda words: len(words))
    return ", ".join(shortest)


def _other(own: dict[str, Any], usual: dict[str, Any]) -> list[str]:
    return [f"{key}={_in_words(own[key])}" for key in own if own[key] != usual[key]]


def _in_words(value: Any) -> str:
    if isinstance(value, dict):  # an attack that another holds
        return str(value["name"])
    if isinstance(value, list):
        return ",".join(map(_in_words, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
