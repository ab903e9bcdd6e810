"""``pinprick bench``: run plans of attacks on models, and look at what came of them."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinprick.cli import bench_show, bench_stores, options
from pinprick.cli.console import Console, print_json, print_table
from pinprick.errors import BadInput, counted

if TYPE_CHECKING:
    from pinprick.bench.cache import Cache
    from pinprick.bench.cell import Cell
    from pinprick.bench.status import Status
    from pinprick.bench.validate import GroupEstimate

_MOST = 3  # damaged files that a message names
_MOST_ERRORS = 10  # that are printed; --json has all

app = typer.Typer(rich_markup_mode=None, help="Run plans of attacks on models; rows go to a store.")
app.command("show")(bench_show.main)

PlanFile = Annotated[
    Path,
    typer.Argument(
        metavar="PLAN", help="A TOML file; docs/how_to/benchmark.md shows how to write one."
    ),
]
StoreFolder = Annotated[
    Path, typer.Option("--store", metavar="DIR", help="The folder of finished cells.")
]


SkipMissing = Annotated[
    bool,
    typer.Option(
        "--skip-missing",
        help="Leave out models and data that cannot be loaded here, and name them.",
    ),
]


class Engine(StrEnum):
    """Where cells run."""

    HERE = "here"
    PROCESSES = "processes"
    RAY = "ray"


@app.command("run")
def run(
    plan: PlanFile,
    store: StoreFolder,
    engine: Annotated[
        Engine,
        typer.Option(
            metavar="here|processes|ray",
            help="here: one cell after the other; processes: several at a time; ray: on the "
            "machines of a Ray cluster.",
        ),
    ] = Engine.HERE,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="COUNT",
            help="Cells at a time with processes or ray; by default one per GPU or CPU core.",
            show_default=False,
        ),
    ] = None,
    share: Annotated[
        str,
        typer.Option(
            metavar="PART/PARTS",
            help="Run one share of the cells, as in 2/8, for machines that share the folder.",
        ),
    ] = "1/1",
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Run cells again whose result is an error.")
    ] = False,
    skip_missing: SkipMissing = False,
    root: options.Root = None,
    trust: options.Trust = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Run the cells of a plan that the store does not have yet.

    Each finished cell is one file in the store. The run can be stopped at any moment, by Ctrl-C or
    otherwise; the same command goes on with the cells that are missing. A cell that fails keeps its
    error as its result, and the others go on.

    The exit status is 0 when all cells are finished, 130 after Ctrl-C, and 2 when some have errors
    or something needs fixing.
    """
    from dataclasses import asdict
    from functools import partial

    from pinprick.bench.cache import Cache
    from pinprick.bench.engines.claims import read_share
    from pinprick.bench.engines.run_cells import run_cells
    from pinprick.bench.run_cell import run_cell
    from pinprick.bench.store import Store

    part, cache, opened = read_share(share), Cache(root, trust=trust), Store(store)
    opened.prepare()
    summary = run_cells(
        _cells(plan, cache, skip_missing=skip_missing),
        opened,
        partial(run_cell, loaded=cache),
        engine=engine.value,
        workers=workers,
        retry_errors=retry_errors,
        share=part,
        progress=Console(quiet=quiet),
    )
    if json:
        print_json(asdict(summary))
    else:
        typer.echo(
            f"{counted(summary.cells, 'cell')}: {summary.finished} run now, "
            f"{summary.found} finished before, {summary.failed} with errors"
        )
    if summary.failed:
        raise BadInput(
            f"errors in {counted(summary.failed, 'cell')}; pinprick bench status prints them, "
            "--retry-errors runs again what failed"
        )


def _cells(path: Path, cache: "Cache", *, skip_missing: bool) -> "tuple[Cell, ...]":
    """The cells of a plan; what is left out is named on stderr."""
    from pinprick.bench.plan_file import read_plan

    plan = read_plan(path)
    if skip_missing:
        plan, missing = plan.without_missing(cache)
        for line in missing:
            Console(quiet=False).warn(f"left out: {line}")
        if not plan.products:
            raise BadInput(f"nothing of {path} can be loaded here")
    return plan.cells(cache)


@app.command("status")
def status(
    plan: PlanFile,
    store: StoreFolder,
    skip_missing: SkipMissing = False,
    root: options.Root = None,
    trust: options.Trust = False,
    json: options.Json = False,
) -> None:
    """Show which cells of a plan are finished, have errors, or are missing.

    Files in the store that are truncated or otherwise damaged are named. A run writes them again.
    Each error is printed once, with the number of cells and rows that have it.
    """
    from pinprick.bench.cache import Cache
    from pinprick.bench.status import status_of
    from pinprick.bench.store import Store
    from pinprick.json_text import to_plain

    if not store.is_dir():
        raise BadInput(f"there is no store {store}; pinprick bench run makes one")
    cells = _cells(plan, Cache(root, trust=trust), skip_missing=skip_missing)
    found = status_of(cells, Store(store))
    if json:
        document = to_plain(found) | {"damaged": list(map(str, found.damaged))}
        print_json(document)
    else:
        _print_status(found)


def _print_status(found: "Status") -> None:
    print_table(
        ("model", "data", "attack", "goal", ">finished", ">cells", ">errors"),
        [
            (
                group.model,
                group.data,
                group.attack,
                group.goal,
                str(group.finished),
                str(group.cells),
                str(group.failed),
            )
            for group in found.groups
        ],
    )
    typer.echo(
        f"{found.finished} of {found.cells} cells are finished, {found.failed} of them with "
        f"errors; {found.others} cells in the store are of other plans"
    )
    if found.damaged:
        names = ", ".join(map(str, found.damaged[:_MOST]))
        more = f" and {len(found.damaged) - _MOST} more" if len(found.damaged) > _MOST else ""
        typer.echo(f"damaged, not read: {names}{more}")
    for error in found.errors[:_MOST_ERRORS]:
        where = f"{counted(error.cells, 'cell')}, {counted(error.rows, 'row')}"
        typer.echo(f"error in {where}: {error.message}")
    if len(found.errors) > _MOST_ERRORS:
        typer.echo(f"{len(found.errors) - _MOST_ERRORS} more errors, which --json lists")


@app.command("validate")
def validate(
    plan: PlanFile,
    skip_missing: SkipMissing = False,
    root: options.Root = None,
    trust: options.Trust = False,
    json: options.Json = False,
) -> None:
    """Check a plan before anything runs: names, settings, data, memory and time.

    The time of passes comes from a few that are measured, for images that spend all passes their
    attack may. What attacks do between passes comes on top: little on large networks, most of the
    time on the smallest. The exit status is 2 when something needs fixing.
    """
    from pinprick.bench.cache import Cache
    from pinprick.bench.validate import estimate
    from pinprick.json_text import to_plain

    cache = Cache(root, trust=trust)
    found = estimate(_cells(plan, cache, skip_missing=skip_missing), cache)
    if json:
        print_json([to_plain(group) for group in found])
    else:
        _print_estimate(found)


def _print_estimate(found: "list[GroupEstimate]") -> None:
    from pinprick.bench.validate import in_gb
    from pinprick.jobs.progress import time_in_words

    def passes(count: int | None) -> str:
        return "no limit" if count is None else str(count)

    print_table(
        (
            "model",
            "attack",
            ">cells",
            ">images",
            ">forwards",
            ">backwards",
            ">time of passes",
            ">batch at least",
        ),
        [
            (
                one.model,
                one.attack,
                str(one.cells),
                str(one.images),
                passes(one.forwards),
                passes(one.backwards),
                "unknown" if one.seconds is None else time_in_words(one.seconds),
                in_gb(one.memory),
            )
            for one in found
        ],
    )
    known = [one.seconds for one in found if one.seconds is not None]
    cells = sum(one.cells for one in found)
    typer.echo(
        f"{counted(cells, 'cell')}: passes take at most {time_in_words(sum(known))} on one worker; "
        "what attacks do between passes comes on top"
    )
    if len(known) < len(found):
        lines = counted(len(found) - len(known), "line")
        typer.echo(f"time unknown, as there is no limit of passes: {lines}")


app.command("verify")(bench_stores.verify)
app.command("diff")(bench_stores.diff)
app.command("merge")(bench_stores.merge)
