"""``pinprick bench verify``, ``diff`` and ``merge``: the rows of stores, checked and joined."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinprick.cli import options
from pinprick.cli.bench_where import Where, read_where
from pinprick.cli.console import Console, print_json

if TYPE_CHECKING:
    from pinprick.bench.stored_rows import Finding

_LINES = 20  # of each kind that are printed; --json has all

StoreArgument = Annotated[Path, typer.Argument(metavar="STORE", help="A folder of finished cells.")]


def verify(
    store: StoreArgument,
    where: Where = None,
    root: options.Root = None,
    trust: options.Trust = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Rebuild every adversarial image of a store and judge it again.

    Compares predictions of the model and of all victims, changed pixels and elements, norms, labels
    and targets. Rows whose margin is within the numerical noise are listed apart: another machine
    may decide otherwise there. Rows whose weights or images are not here are not verified.

    The exit status is 2 when a row differs, a file is damaged, or nothing could be verified.
    """
    from pinprick.bench.verify import verify_store

    found = verify_store(
        store,
        where=read_where(where),
        root=root,
        trust=trust,
        progress=Console(quiet=quiet),
    )
    if json:
        print_json(found.plain())
    else:
        _print_lines("differs", map(_words, found.differences))
        _print_lines("within the numerical noise", map(_words, found.within_noise))
        _print_lines("damaged", map(str, found.damaged))
        for one in found.not_verified:
            way = f"; get it with: {one.command}" if one.command else ""
            typer.echo(
                f"not verified: {one.rows} rows need {one.name} with SHA-256 {one.sha256}; "
                f"{one.reason}{way}"
            )
        different = len({(one.cell.key, one.index) for one in found.differences})
        typer.echo(
            f"{found.verified} of {found.rows} rows verified, {different} differ; "
            f"{len(found.damaged)} files are damaged"
        )
        if found.unsaved:
            typer.echo(f"{found.unsaved} rows have a dense perturbation that was not saved")
        if found.errors:
            typer.echo(f"{found.errors} rows are errors, with nothing to verify")
    if found.failed:
        raise typer.Exit(2)


def diff(first: StoreArgument, second: StoreArgument, json: options.Json = False) -> None:
    """List the rows in which two stores differ, apart from times.

    The exit status is 2 when a row differs, a file is damaged, or only one store has a cell.
    """
    from pinprick.bench.compare_stores import diff_stores

    found = diff_stores(first, second)
    if json:
        print_json(found.plain())
    else:
        lines = (
            f"{row.cell.title}, image {row.index}: {name} {_brief(old)}, {_brief(new)}"
            for row in found.rows
            for name, (old, new) in row.columns.items()
        )
        _print_lines("differs", lines)
        for folder, cells in ((first, found.only_first), (second, found.only_second)):
            _print_lines(f"only in {folder}", (f"{cell.title}, {cell.key}" for cell in cells))
        _print_lines("damaged", map(str, found.damaged))
        alone = len(found.only_first) + len(found.only_second)
        typer.echo(
            f"{found.same} cells are the same, {len(found.rows)} rows differ, "
            f"{alone} cells are in one store only, {len(found.damaged)} files are damaged"
        )
    if found:
        raise typer.Exit(2)


def merge(
    stores: Annotated[
        list[Path], typer.Argument(metavar="STORE...", help="Folders of finished cells.")
    ],
    into: Annotated[
        Path, typer.Option("--into", metavar="DIR", help="The store that gets all cells.")
    ],
    json: options.Json = False,
) -> None:
    """Copy the cells of several stores into one.

    Of several files with the same rows the first is copied, whatever their times. Two files with
    different rows for one cell are refused, and nothing is copied then.

    The exit status is 2 when cells are refused, or a damaged file was left out.
    """
    from pinprick.bench.compare_stores import merge_stores

    merged = merge_stores(stores, into)
    if json:
        print_json(merged.plain())
    else:
        _print_lines("damaged, left out", map(str, merged.damaged))
        typer.echo(f"{merged.added} cells added to {into}, which had {merged.known} before")
    if merged.damaged:
        raise typer.Exit(2)


def _words(finding: "Finding") -> str:
    return (
        f"{finding.cell.title}, image {finding.index}: {finding.column} "
        f"{_brief(finding.stored)}, here {_brief(finding.found)}"
    )


def _brief(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _print_lines(kind: str, lines: Iterable[str]) -> None:
    every: Sequence[str] = list(lines)
    for line in every[:_LINES]:
        typer.echo(f"{kind}: {line}")
    if len(every) > _LINES:
        typer.echo(f"{kind}: {len(every) - _LINES} more, which --json lists")
