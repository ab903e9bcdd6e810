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


def read_where(given: Sequence[str] | None) -> dict[str, list[str]]:
    """``["model=a,b"]`` as ``{"model": ["a", "b"]}``."""
    where: dict[str, list[str]] = {}
    for text in given or ():
        column, equals, values = text.partition("=")
        if not (column and equals and values):
            raise BadInput(f"--where takes column=value, as in device=cpu; got {text!r}")
        where.setdefault(column.strip(), []).extend(map(str.strip, values.split(",")))
    return where
