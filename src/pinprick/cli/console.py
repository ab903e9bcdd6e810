"""Where text goes: results to stdout, progress and remarks to stderr."""

import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pinprick.errors import PinprickError, Stopped
from pinprick.jobs.progress import Advance, CellCount, Progress, ShowCells

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn

    from pinprick.data.pictures import PictureRecord, Unreadable
    from pinprick.jobs.seeds import SeedRuns
    from pinprick.report.row import Row
    from pinprick.report.summary import Summary

_PIPED, _UNFOLDED = 100, 240  # columns of lists and of tables where there is no terminal
_SILENCE = 10  # seconds without a line, where there is no bar


class Console(Progress):
    """Prints what a job tells, on stderr; only warnings if ``quiet``."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    def remark(self, text: str) -> None:
        if not self.quiet:
            typer.echo(text, err=True)

    def warn(self, text: str) -> None:
        typer.echo(f"pinprick: {text}", err=True)

    @contextmanager
    def count_images(self, total: int, title: str) -> Iterator[Advance]:
        """A bar that counts images and disappears at the end; lines where there is no terminal."""
        start = printed = time.monotonic()
        done = 0
        with progress_bar(quiet=self.quiet) as bar:
            task = bar.add_task(title, total=total)

            def advance(count: int) -> None:
                nonlocal done, printed
                bar.advance(task, count)
                done, now = done + count, time.monotonic()
                if bar.disable and now - printed > _SILENCE:
                    self.remark(f"{title}: {done} of {total} images in {now - start:.0f} s")
                    printed = now

            yield advance

    @contextmanager
    def show_cells(self) -> Iterator[ShowCells]:
        """A bar and a line per running cell; where there is no terminal, lines now and then."""
        from rich.progress import BarColumn, TextColumn

        printed = time.monotonic()
        columns = (BarColumn(20), TextColumn("{task.description}", markup=False))
        with progress_bar(*columns, quiet=self.quiet) as bar:
            task = bar.add_task("", total=None)

            def show(count: CellCount) -> None:
                nonlocal printed
                lines = (str(count), *count.running)
                bar.update(
                    task,
                    total=count.images,
                    completed=count.images_done,
                    description="\n".join(lines),
                )
                if bar.disable and time.monotonic() - printed > _SILENCE:
                    self.remark("; ".join(lines))
                    printed = time.monotonic()

            yield show


def progress_bar(*columns: "ProgressColumn", quiet: bool) -> "Bar":
    """A bar on stderr that disappears at the end; none if ``quiet`` or without a terminal."""
    from rich.console import Console as Terminal
    from rich.progress import Progress as Bar

    terminal = Terminal(stderr=True, markup=False, highlight=False)
    hidden = quiet or not terminal.is_terminal
    return Bar(*columns, console=terminal, transient=True, disable=hidden)


def print_json(document: Any) -> None:
    from pinprick.jobs.output import as_json

    typer.echo(as_json(document))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, fold: bool = False
) -> None:
    """A table on stdout; a column whose name starts with ">" is aligned to the right.

    Without a terminal lines are as long as they need to be. With ``fold`` they have at most 100
    characters, or as many as COLUMNS says; the first column is never folded.
    """
    from rich import box
    from rich.console import Console as Terminal
    from rich.table import Table
    from rich.text import Text

    terminal = Terminal(markup=False, highlight=False)
    if not terminal.is_terminal:
        width = shutil.get_terminal_size((_PIPED, 0)).columns if fold else _UNFOLDED
        terminal = Terminal(markup=False, highlight=False, width=width)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        right = column.startswith(">")
        table.add_column(
            column.removeprefix(">"),
            justify="right" if right else "left",
            overflow="fold",
            no_wrap=fold and not table.columns,
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    terminal.print(table)


def label_words(record: "PictureRecord") -> str:
    """The label of a picture, with a star where it is the model's prediction."""
    return f"{record.label_name}{' *' if record.label_from == 'model' else ''}"


def print_label_note(records: "Sequence[PictureRecord]") -> None:
    """What the star in a table means, if there is one."""
    if any(record.label_from == "model" for record in records):
        typer.echo("* the label is unknown: the model's clean prediction is used")


def print_out_of_time(rows: "Sequence[Row]") -> None:
    """How many images --max-seconds cut short, if any."""
    late = [row for row in rows if row.out_of_time]
    if late:
        begun = sum(row.forwards > 0 for row in late)
        typer.echo(
            f"out of time: {begun} of {len(rows)} cut short, {len(late) - begun} not attacked; "
            "--max-seconds gives more"
        )


def print_summary(console: Console, runs: "SeedRuns[Any]", form: str | None, *, json: bool) -> bool:
    """Print what ``--json`` or ``--format`` asks for, and warn if many images were wrong before.

    Returns whether that is all to be printed.
    """
    if runs.summary.warning:
        console.warn(runs.summary.warning)
    if json:
        several = {"seeds": runs.documents, "summary": runs.summary.plain()}
        print_json(runs.documents[0] if len(runs.documents) == 1 else several)
    elif form is not None or len(runs.documents) > 1 or not runs.outcomes:
        typer.echo(getattr(runs.summary, form or "text")())
    else:
        return False
    return True


def print_summary_of_several(summary: "Summary") -> None:
    """The summary below the table of all pictures; of one picture the table says it all."""
    if any(row.images > 1 for row in summary.rows):
        typer.echo(f"\n{summary.text()}")


def print_seconds_note(rows: "Sequence[Row]") -> None:
    """That seconds are shares of a batch, if images were attacked together."""
    largest = max((row.batch_size for row in rows), default=1)
    if largest > 1:
        typer.echo(
            f"seconds: time of the batch divided by its attacked images, up to {largest} together; "
            "--batch-size 1 times each image"
        )


def remark_files(
    console: Console, made: Sequence[str], out: Path, runs: "SeedRuns[Any]", *, several: bool
) -> None:
    """Say where the files are that this run made; a run that was stopped has said so.

    Args:
        console: Where it is said.
        made: The files, as in "figures" and "compare.json".
        out: The folder of all seeds.
        runs: What the seeds gave.
        several: Whether each seed has a folder of its own.
    """
    if not runs.outcomes or isinstance(runs.failure, Stopped):
        return
    names = " and ".join(filter(None, (", ".join(made[:-1]), made[-1])))
    where = f"{out}/seed-N per seed, summary.json is in {out}" if several else f"{out}"
    console.remark(f"{names} {'is' if len(made) == 1 else 'are'} in {where}")


def end(failure: PinprickError | None, unreadable: "Sequence[Unreadable]") -> None:
    """Exit with status 2 if a job failed or left files out; all it found is shown by now."""
    if failure is not None:
        raise failure
    if unreadable:
        raise typer.Exit(2)
