"""The tables of settings and presets of training, from the declared fields and the presets."""

from dataclasses import fields
from textwrap import wrap
from typing import Any

from pinprick.report.docs_measured import markdown_table
from pinprick.settings import meanings_of
from pinprick.train import RECIPES
from pinprick.train.exam import Exam
from pinprick.train.presets import DATA, NET, RECIPE
from pinprick.train.schedule import Schedule

DISTANCES = ("eps", "step_size", "exam_eps")
INDENT = " " * 4


def of_recipes() -> str:
    """The settings of every recipe."""
    columns = ("recipe", "setting", "default", "meaning")
    rows = [(f"`{name}`", *row) for name, recipe in RECIPES.items() for row in _rows(recipe)]
    return markdown_table(columns, rows)


def of_schedule() -> str:
    """The settings that every recipe has."""
    return markdown_table(("setting", "default", "meaning"), _rows(Schedule))


def of_exam() -> str:
    """The settings of the final measurements."""
    return markdown_table(("setting", "default", "meaning"), _rows(Exam))


def presets() -> str:
    """What differs from the defaults: by dataset, by recipe on it, by network and recipe."""
    named = [(data, own) for data, own in DATA.items()]
    named += [(f"{data}, {recipe}", own) for (data, recipe), own in RECIPE.items()]
    named += [(f"{net}, {recipe}", own) for (net, recipe), own in NET.items()]
    texts = [
        " ".join(f"{key}={_shown(key, value)}" for key, value in own.items()) for _, own in named
    ]
    lines = ["```"]
    for text in dict.fromkeys(texts):  # presets with the same settings share them
        lines.append(
            "; ".join(name for (name, _), own in zip(named, texts, strict=True) if own == text)
        )
        lines += wrap(text, 92, initial_indent=INDENT, subsequent_indent=INDENT)
    return "\n".join([*lines, "```"])


def _rows(cls: type) -> list[tuple[str, str, str]]:
    meanings = meanings_of(cls)
    return [
        (
            f"`{one.name}`",
            f"`{_shown(one.name, one.default)}`",
            meanings[one.name].replace("``", "`"),
        )
        for one in fields(cls)
    ]


def _shown(key: str, value: Any) -> str:
    """A value as ``--option`` takes it; distances between pixel values in 8-bit levels."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{','.join(_shown(key, one) for one in value)}]"
    if isinstance(value, float):
        levels = value * 255
        whole = key in DISTANCES and abs(levels - round(levels)) < 1e-9
        return f"{levels:.0f}/255" if whole else f"{value:.4g}".replace("e-0", "e-")
    return str(value)


PAGES = {
    "docs/how_to/robust_model.md": {
        "settings of recipes": of_recipes,
        "settings of the schedule": of_schedule,
        "settings of the exam": of_exam,
        "presets": presets,
    }
}
