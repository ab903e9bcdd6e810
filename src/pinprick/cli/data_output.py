"""What ``pinprick data`` prints: tables and bars for people, documents for programs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from pinprick.cli.console import print_table, remark
from pinprick.data.check import DataReport, SplitReport, is_there
from pinprick.data.dataset import SPLITS
from pinprick.data.fetch import Progress
from pinprick.data.registry import FORMS, SOURCES

_MOST = 100  # classes that a table lists


def print_sources(root: Path) -> None:
    columns = ("name", "title", ">train", ">test", ">classes", "size", "there")
    rows = []
    for source in SOURCES.values():
        counts = (str(source.counts.get(split, "-")) for split in ("train", "test"))
        size = " x ".join(map(str, source.shape)) if source.shape else "various"
        there = "yes" if is_there(source.name, root) else "-"
        rows.append((source.name, source.title, *counts, str(source.classes), size, there))
    print_table(columns, rows)
    typer.echo(f"kept in {root}; also {', '.join(FORMS)}")


def sources_document(root: Path) -> dict[str, Any]:
    return {
        "format": 1,
        "root": str(root),
        "datasets": [
            {
                "name": source.name,
                "title": source.title,
                "images": source.counts,
                "classes": source.classes,
                "shape": source.shape,
                "there": is_there(source.name, root),
            }
            for source in SOURCES.values()
        ],
    }


def print_report(report: DataReport) -> None:
    """Faults on stderr, and what there is on stdout."""
    for fault in report.faults:
        remark(f"pinprick: {fault.path}: {fault.reason}")
    if not report.parts:
        return
    for part in report.parts:
        contents = f"contents {part.contents}" if part.contents else "not whole"
        typer.echo(f"{part.source}: {part.images} images, {contents}")
    names = list(dict.fromkeys(name for part in report.parts for name in part.by_class))
    if len(names) > _MOST:
        for part in report.parts:
            typer.echo(f"{part.source}: {_span(part)}")
    else:
        columns = ("class", *(f">{_heading(part)}" for part in report.parts))
        rows = [(n, *(str(part.by_class.get(n, 0)) for part in report.parts)) for n in names]
        print_table(columns, rows)
    if not report.faults:
        typer.echo(f"{report.name}: nothing to put right")


def report_document(report: DataReport) -> dict[str, Any]:
    return {
        "format": 1,
        "name": report.name,
        "parts": [asdict(part) for part in report.parts],
        "faults": [{"path": str(fault.path), "reason": fault.reason} for fault in report.faults],
    }


@contextmanager
def watch_bytes(*, quiet: bool) -> Iterator[Progress]:
    """A bar on stderr for each file that is fetched."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        tasks: dict[str, Any] = {}

        def progress(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name)
            bar.update(tasks[name], completed=done, total=total or None)

        yield progress


@contextmanager
def watch_files(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr that counts files."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    with Progress(console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _heading(part: SplitReport) -> str:
    split = part.source.rpartition("/")[2]
    return split if split in SPLITS else "images"


def _span(part: SplitReport) -> str:
    fewest, most = min(part.by_class.values()), max(part.by_class.values())
    each = str(fewest) if fewest == most else f"{fewest} to {most}"
    return f"{len(part.by_class)} classes of {each} images"
