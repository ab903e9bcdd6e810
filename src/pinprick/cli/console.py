"""Where words go: results to stdout, progress and remarks to stderr."""

import time
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TypeVar

import typer

Batch = TypeVar("Batch", bound=Sized)

_SILENCE = 10  # seconds without a word


def remark(text: str) -> None:
    typer.echo(text, err=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout; a column whose name starts with ">" is aligned to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=240)  # do not fold what is piped
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        right = column.startswith(">")
        table.add_column(
            column.removeprefix(">"), justify="right" if right else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def watch(batches: Iterable[Batch], total: int, what: str, *, quiet: bool) -> Iterator[Batch]:
    """The same batches, with a bar on stderr that counts images and is gone at the end.

    Where stderr is no terminal, a line now and then takes its place.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    start = spoken = time.monotonic()
    done = 0
    with Progress(console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(what, total=total)
        for batch in batches:
            yield batch
            bar.advance(task, len(batch))
            done, now = done + len(batch), time.monotonic()
            if hidden and not quiet and now - spoken > _SILENCE:
                remark(f"{what}: {done} of {total} images in {now - start:.0f} s")
                spoken = now
