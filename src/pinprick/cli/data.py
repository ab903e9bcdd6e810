"""``pinprick data``: list datasets, get them, check them, and sample from them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinprick.cli import options
from pinprick.cli.console import Console, print_json, print_table, progress_bar

if TYPE_CHECKING:
    from pinprick.data.check import DataReport, SplitReport
    from pinprick.data.fetch import Progress as CountBytes

_MOST = 100  # classes that a table lists

app = typer.Typer(rich_markup_mode=None, help="List, get and check datasets, and sample from them.")

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A dataset, as `pinprick data list` names them, or folder:PATH, csv:PATH or "
        "tensors:PATH.",
    ),
]


@app.command("list")
def list_all(root: options.Root = None, json: options.Json = False) -> None:
    """List the datasets that have a name, and show which are there."""
    from pinprick.data.registry import data_root

    if json:
        print_json(_sources_document(data_root(root)))
    else:
        _print_sources(data_root(root))


@app.command("get")
def get(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Which datasets to get.")],
    root: options.Root = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Download datasets, or what is missing of them.

    Downloads that were interrupted are resumed. Files are checked and unpacked.
    """
    from pinprick.data.registry import data_root, find_source

    where = data_root(root)
    sources = [find_source(name) for name in names]
    for source in sources:
        with _count_bytes(quiet=quiet) as count:
            source.get(where, count)
        if not json:
            found = f"is in {where / source.place}" if source.place else "comes with the package"
            typer.echo(f"{source.name} {found}")
    if json:
        datasets = [{"name": source.name, "root": str(where)} for source in sources]
        print_json({"format": 1, "datasets": datasets})


@app.command("check")
def check(
    name: Name,
    root: options.Root = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Check whether a dataset is complete, and show what is in it.

    Reads every file, counts images per class and gives a hash of all contents.

    The exit status is 0 when nothing was found, and 2 when something needs fixing.
    """
    from pinprick.data.check import check_data

    with _count_files(name, quiet=quiet) as count:
        report = check_data(name, root=root, progress=count)
    if json:
        print_json(_report_document(report))
    else:
        _print_report(report)
    if report.faults:
        raise typer.Exit(2)


@app.command("draw")
def draw(
    images: Annotated[
        str,
        typer.Argument(
            metavar="SET[IMAGES]", help="Which images, as in cifar10/test[random=100,seed=7]."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The index file to write.")],
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Write the indices of some images to an index file.

    SET[@FILE] then names these images.
    """
    from pinprick.data.select import load_subset, write_index
    from pinprick.data.subset import describe, parse

    subset = parse(images)
    chosen = load_subset(subset, root=root)
    write_index(chosen, out, made=describe(subset))
    if json:
        print_json(
            {
                "format": 1,
                "made": describe(subset),
                "source": chosen.source,
                "indices": chosen.indices.tolist(),
            }
        )
    else:
        typer.echo(f"{len(chosen)} images of {chosen.source} are listed in {out}")


def _print_sources(root: Path) -> None:
    from pinprick.data.check import is_there
    from pinprick.data.registry import FORMS, SOURCES

    columns = ("name", "title", ">train", ">test", ">classes", "size", "there")
    rows = []
    for source in SOURCES.values():
        counts = (str(source.counts.get(split, "-")) for split in ("train", "test"))
        size = " x ".join(map(str, source.shape)) if source.shape else "various"
        there = "yes" if is_there(source.name, root) else "-"
        rows.append((source.name, source.title, *counts, str(source.classes), size, there))
    print_table(columns, rows)
    typer.echo(f"kept in {root}; also {', '.join(FORMS)}")


def _sources_document(root: Path) -> dict[str, Any]:
    from pinprick.data.check import is_there
    from pinprick.data.registry import SOURCES

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


def _print_report(report: "DataReport") -> None:
    """Faults on stderr, and what there is on stdout."""
    for fault in report.faults:
        Console(quiet=False).warn(f"{fault.path}: {fault.reason}")
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
        typer.echo(f"{report.name}: nothing to fix")


def _report_document(report: "DataReport") -> dict[str, Any]:
    return {
        "format": 1,
        "name": report.name,
        "parts": [asdict(part) for part in report.parts],
        "faults": [{"path": str(fault.path), "reason": fault.reason} for fault in report.faults],
    }


@contextmanager
def _count_bytes(*, quiet: bool) -> "Iterator[CountBytes]":
    """A bar on stderr per file that is fetched."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with progress_bar(*columns, quiet=quiet) as bar:
        tasks: dict[str, Any] = {}

        def count(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name)
            bar.update(tasks[name], completed=done, total=total or None)

        yield count


@contextmanager
def _count_files(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr that counts files."""
    with progress_bar(quiet=quiet) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _heading(part: "SplitReport") -> str:
    from pinprick.data.dataset import SPLITS

    split = part.source.rpartition("/")[2]
    return split if split in SPLITS else "images"


def _span(part: "SplitReport") -> str:
    fewest, most = min(part.by_class.values()), max(part.by_class.values())
    each = str(fewest) if fewest == most else f"{fewest} to {most}"
    return f"{len(part.by_class)} classes of {each} images"
