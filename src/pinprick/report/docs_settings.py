"""The settings of every attack in Markdown, from the fields that declare them."""

import re
import textwrap
from typing import Any

from pinprick.attacks import ATTACKS
from pinprick.attacks.build import all_settings, build
from pinprick.attacks.card import Attack, Card, norm_and_units
from pinprick.report.words import value_words
from pinprick.settings import meanings_of, ranges_of

_TYPES = {"bool": "true or false", "str": "text", "float": "a number", "Attack": "an attack"}


def settings_reference(pages: str) -> str:
    """A section per attack; ``pages`` is the folder of the pages of methods."""
    return "\n\n".join(_section(cls, pages) for cls in ATTACKS.values())


def _section(cls: type[Attack], pages: str) -> str:
    attack = cls()
    meanings, ranges = meanings_of(cls), ranges_of(cls)
    items = [
        f"- `{name}` = `{_value(value)}` ({_range(ranges[name])}): {meanings[name]}"
        for name, value in all_settings(attack).items()
        if name != "name"
    ]
    for name, preset in cls.presets.items():
        words = ", ".join(f"`{key}={_value(value)}`" for key, value in preset.items())
        passes = _passes(build({"name": cls.card.name, "preset": name}).facts())
        items.append(f"- `preset={name}`: {words}. {passes}")
    lines = [line for item in items for line in _wrap(item, "  ")]
    return "\n".join([f"## {cls.card.name}", "", *_wrap(_facts(cls, pages), ""), "", *lines])


def _facts(cls: type[Attack], pages: str) -> str:
    card = cls().facts()
    takes = {"targets": card.targeted, "a mask": card.masked, "a start": card.starts}
    taken = [name for name, does in takes.items() if does]
    sentences = [
        f"[{card.title}]({pages}{card.name}.md): {card.kind} attack, "
        f"{norm_and_units(cls).replace('linf', 'l∞')}.",
        f"Needs {card.access}{f', or {card.least_access} alone' if card.least_access else ''}.",
        f"Takes {_joined(taken)}." if taken else "Takes no targets, mask or start.",
        "Depends on the seed." if card.random else "",
        _passes(card),
        f"Revision {card.revision}.",
    ]
    return " ".join(filter(None, sentences))


def _passes(card: Card) -> str:
    if card.max_forwards is None or card.max_backwards is None:
        return "No bound on passes."
    return f"At most {card.max_forwards} forward and {card.max_backwards} backward passes."


def _value(value: Any) -> str:
    """As ``--option`` takes it, with levels of 8 bits as fractions: 8/255."""
    if isinstance(value, float) and round(value, 4) != value:
        levels = round(value * 255)
        if abs(value * 255 - levels) < 1e-9:
            return f"{levels}/255"
    return value_words(value)


def _range(words: str) -> str:
    """What a setting may be, with choices as code."""
    named = re.sub(r"\b(?:bool|str|float|Attack)\b", lambda found: _TYPES[found[0]], words)
    return re.sub(r"'([^']*)'", r"`\1`", named)


def _joined(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _wrap(text: str, indent: str) -> list[str]:
    plain = text.replace("``", "`")
    return textwrap.wrap(
        plain, 100, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
