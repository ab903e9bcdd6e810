"""The settings of an attack in a few words, so that a table says what was run."""

from typing import Any

from pinprick.attacks.build import describe
from pinprick.attacks.card import Attack


def settings_in_words(attack: Attack) -> str:
    """What is not the attack's default, as the shell takes it; its k too where that is fixed.

    A preset stands for its settings where that is shorter: "preset=quick, k=50".
    """
    own, usual = describe(attack), describe(type(attack)())
    if "k" in own and attack.facts().kind == "budget":
        usual["k"] = None  # so that it is said
    ways = [
        [f"preset={name}", *_other(own, {**usual, **preset, "k": usual.get("k")})]
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
