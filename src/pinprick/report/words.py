"""Numbers, predictions, outcomes and settings as text, for tables and figures alike."""

import textwrap
from collections.abc import Iterable
from typing import Any

from pinprick.attacks.build import all_settings
from pinprick.attacks.card import Attack
from pinprick.report.row import Prediction, Row

FIXED = "\N{NO-BREAK SPACE}"  # where a line must not be broken
_ALWAYS = {"pgd0": ("step_size",)}  # shown also at the default: it decides how good the attack is


def prediction_words(prediction: Prediction) -> str:
    """For instance "espresso 0.98"; without a number where the model gives labels alone."""
    if not prediction.answered:
        return "no answer"
    return f"{prediction.name} {_confidence(prediction)}".strip()


def prediction_below(prediction: Prediction, width: int = 26) -> str:
    """The same to stand under a picture: a long name is folded, the confidence always shown."""
    whole = prediction_words(prediction)
    if len(whole) <= width:
        return whole
    return f"{folded(prediction.name, width)}\n{_confidence(prediction)}".strip()


def _confidence(prediction: Prediction) -> str:
    return "" if prediction.confidence is None else f"{prediction.confidence:.2f}"


def outcome_words(row: Row) -> str:
    """The outcome for one image in a few words."""
    doubt = ", within noise" if row.within_noise else ""
    if row.skipped:
        return f"already {'wrong' if row.target is None else 'there'}{doubt}"
    found_by = f" by {row.found_by}" if row.found_by else ""
    return f"fooled{found_by}{doubt}" if row.success else f"{row.remark}{doubt}"


def goal_words(targets: Iterable[str | None], asked: str | None = None) -> str:
    """The goal, as in "target two"; empty if it is untargeted.

    Args:
        targets: The name of the target of each image; None for an untargeted goal.
        asked: What ``--target`` said, where that is known.
    """
    names = set(targets)
    if not names - {None}:
        return ""
    if asked == "least-likely":
        return "target least-likely"
    return f"target {names.pop()}" if len(names) == 1 else "targets that differ by image"


def with_goal(text: str, goal: str) -> str:
    """A title with the goal behind it, if there is one."""
    return f"{text}, {goal}" if goal else text


def changed(row: Row) -> str:
    """Changed pixels and changed elements, one per line."""
    return (
        f"{amount(row.l0_pixels, 'pixels', row.l0_pixels_percent)}\n"
        f"{amount(row.l0_elements, 'elements', row.l0_elements_percent)}"
    )


def amount(count: int, unit: str, percent: float) -> str:
    """For instance "15 pixels (0.030 %)"."""
    return f"{count} {unit if count != 1 else unit.removesuffix('s')} ({share(percent)})"


def share(percent: float) -> str:
    """A percentage with two significant digits and at most three decimals."""
    places = (
        0
        if percent >= 9.95 or percent == 0
        else 1
        if percent >= 0.995
        else 2
        if percent >= 0.0995
        else 3
    )
    return f"{percent:.{places}f} %"


def signed(number: float) -> str:
    """With its sign and two decimals; zero has a plus."""
    return f"{round(number, 2) + 0.0:+.2f}"


def duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.0f} s"


def time_words(row: Row) -> str:
    """For instance "0.52 s"; it says so where this is a share of the time of a batch."""
    return f"{duration(row.seconds)}{' (share of batch)' if row.batch_size > 1 else ''}"


def fitted(text: str, width: int) -> str:
    """Broken into lines between words; a word wider than ``width`` loses its middle."""
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(cut(line, width) for line in lines).replace(FIXED, " ")


def cut(text: str, width: int) -> str:
    """At most ``width`` characters: the start, and the longer end, which has the index."""
    head = (width - 1) // 3
    return text if len(text) <= width else f"{text[:head]}…{text[head + 1 - width :]}"


def folded(text: str, width: int = 26, lines: int = 2) -> str:
    """Broken into at most ``lines`` lines; an ellipsis stands for what does not fit."""
    return textwrap.fill(text, width, max_lines=lines, placeholder=" …")


def settings_in_words(attack: Attack) -> str:
    """Settings that differ from the default, as ``--option`` takes them.

    A fixed k is always shown, and so is what ``_ALWAYS`` lists. A preset replaces its settings
    where that is shorter: "preset=quick, k=50".
    """
    own, usual = all_settings(attack), all_settings(type(attack)())
    always = _ALWAYS.get(attack.card.name, ())
    if "k" in own and attack.facts().kind == "budget":
        always = ("k", *always)
    unlike = dict.fromkeys(always)  # None differs from every value of these
    usual |= unlike
    choices = [
        [f"preset={name}", *_different(own, usual | dict(preset) | unlike)]
        for name, preset in attack.presets.items()
    ]
    shortest = min([*choices, _different(own, usual)], key=lambda words: len(words))
    return ", ".join(shortest)


def _different(own: dict[str, Any], usual: dict[str, Any]) -> list[str]:
    return [f"{key}={value_words(own[key])}" for key in own if own[key] != usual[key]]


def value_words(value: Any) -> str:
    """A setting as ``--option`` takes it; of an attack, its name."""
    if isinstance(value, dict):  # an attack within an attack
        return str(value["name"])
    if isinstance(value, list):
        return ",".join(map(value_words, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
