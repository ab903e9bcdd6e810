"""``--where``: which cells of a store a command is about."""

from collections.abc import Sequence
from typing import Annotated

import typer

from pinprick.errors import BadInput

Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=VALUE",
        help="Only cells with this value, as in model=a,b or device=cpu; may be repeated.",
    ),
]


def split_values(text: str) -> list[str]:
    """The values between commas; commas in brackets are part of a value."""
    values, depth = [""], 0
    for letter in text:
        if letter == "," and not depth:
            values.append("")
            continue
        values[-1] += letter
        depth = max(0, depth + (letter in "[{") - (letter in "]}"))
    return [value.strip() for value in values]


def read_where(given: Sequence[str] | None) -> dict[str, list[str]]:
    """``["model=a,b"]`` as ``{"model": ["a", "b"]}``."""
    where: dict[str, list[str]] = {}
    for text in given or ():
        column, equals, values = text.partition("=")
        if not (column and equals and values):
            raise BadInput(f"--where takes column=value, as in device=cpu; got {text!r}")
        where.setdefault(column.strip(), []).extend(split_values(values))
    return where
