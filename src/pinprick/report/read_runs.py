"""Read the runs of a benchmark store.

Rows are read lazily with polars: only the columns that are needed, never the perturbations. A row
with an error is missing, and is no failure of the attack.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pinprick.errors import BadInput, UnknownName
from pinprick.metrics.needed import Numbers
from pinprick.metrics.unit import Unit
from pinprick.report.attack_labels import attack_labels
from pinprick.report.store_runs import Indices, Run, StoreRuns, Task, any_images

if TYPE_CHECKING:
    import polars as pl

_LIMITS = ("max_forwards", "max_backwards", "max_passes")
ATTACK = ("attack", "settings", "revision", "code", *_LIMITS)
_TASK = ("model", "weights", "data", "goal")
_CELL = (*ATTACK, *_TASK, "data_hash", "first", "last", "seed", "batch_size", "threads")
# columns by which rows can be chosen
CELL = (*_CELL, "precision", "device", "speed", "labels_by_number")
_COUNTS = ("forwards", "backwards", "seconds")
_ROW = ("index", "correct", "skipped", "success", "pixels", "elements", *_COUNTS)


def choose_cells(
    cells: "pl.DataFrame",
    where: Mapping[str, Sequence[str]] | None = None,
    attacks: Sequence[str] | None = None,
) -> "pl.DataFrame":
    """Some of the cells of a store, each with the ``name`` of its attack.

    The seed decides random targets, so each seed is a goal of its own there, with one seed. Labels
    by number may be other labels, so they are a goal of their own, too.

    Args:
        cells: The cells, as ``Store.rows_and_cells`` gives them.
        where: Values of columns of cells; other cells are left out.
        attacks: The attacks to choose, by name, with or without settings; None for all.
    """
    import polars as pl

    cells = _choose(cells.select("cell", *CELL, "victim_models", "victim_weights"), where or {})
    labels = attack_labels(cells.select(ATTACK).unique().sort("attack", "settings").to_dicts())
    cells = cells.with_columns(
        name=pl.Series([labels[row] for row in cells.select(ATTACK).iter_rows()], dtype=pl.String)
    )
    if attacks is not None:
        for name in attacks:
            if name not in cells["name"] and name not in cells["attack"]:
                raise UnknownName("attack in the store", name, set(labels.values()))
        stated = pl.col("name").is_in(list(attacks)) | pl.col("attack").is_in(list(attacks))
        cells = cells.filter(stated)
    random = pl.col("goal") == "random"
    seeded = pl.format("random, seed {}", "seed")
    by_number = pl.when("labels_by_number").then(pl.lit(", labels by number")).otherwise(pl.lit(""))
    return cells.with_columns(
        goal=pl.when(random).then(seeded).otherwise("goal") + by_number,
        seed=pl.when(random).then(0).otherwise("seed"),
    )


def one_of_alike(rows: "pl.LazyFrame", cells: "pl.DataFrame") -> "pl.DataFrame":
    """Of cells that differ only in victims and in what is saved, one: the attack did the same.

    It is one of those with the fewest errors and then with the most victims.
    """
    import polars as pl

    if len(cells) == len(cells.unique(CELL)):
        return cells
    failed = rows.filter(pl.col("error") != "").group_by("cell").len("errors").collect()
    fewest_errors = pl.col("errors").fill_null(0)
    most_victims = -pl.col("victim_models").list.len().cast(pl.Int64)
    return (
        cells.join(failed, on="cell", how="left")
        .sort(fewest_errors, most_victims, "cell")
        .unique(CELL, keep="first", maintain_order=True)
        .drop("errors")
    )


def read_runs(
    rows: "pl.LazyFrame", cells: "pl.DataFrame", unit: Unit, *, best_so_far: bool = False
) -> StoreRuns:
    """The runs of some cells.

    Args:
        rows: The rows.
        cells: The cells, as ``choose_cells`` gives them; of those alike one counts.
        unit: The unit of ``Run.fewest``.
        best_so_far: Whether ``Run.fewest`` counts images that the attack saw and did not return.
    """
    import polars as pl

    wanted = [pl.col("cell"), pl.col("error").str.len_bytes() > 0]
    wanted += [pl.col(name) for name in (*_ROW, "first_success_forwards")]
    if best_so_far:
        wanted.append(pl.col("steps").list.last().struct.field(unit).alias("fewest"))
    frame = rows.select(wanted).collect()
    cells = one_of_alike(rows, cells)
    found: dict[tuple[str, Task], dict[int, Run]] = {}
    errors: dict[tuple[str, Task], int] = {}
    images: dict[Task, list[Indices]] = {}
    for label, task, seed, run, failed in _split(frame, unit, cells):
        if len(run.index):
            found.setdefault((label, task), {})[seed] = run
        errors[label, task] = errors.get((label, task), 0) + len(failed)
        images.setdefault(task, []).extend((run.index, failed))
    return StoreRuns(
        tuple(sorted(set(cells["name"]))),
        tuple(sorted({Task(*task) for task in cells.select(_TASK).iter_rows()})),
        found,
        errors,
        {task: any_images(of_runs) for task, of_runs in images.items()},
    )


def _choose(cells: "pl.DataFrame", where: Mapping[str, Sequence[str]]) -> "pl.DataFrame":
    import polars as pl

    every = cells
    for column, values in where.items():
        if column not in CELL:
            raise UnknownName("column of cells", column, CELL)
        known = every[column].cast(pl.String)
        for value in values:
            if value not in known:
                raise UnknownName(column, value, known.drop_nulls().unique())
        cells = cells.filter(pl.col(column).cast(pl.String).is_in(list(values)))
    if not len(cells):
        raise BadInput("no cell of the store has all of these values; ask for fewer at a time")
    same = ("model", "data", "first", "last", "weights", "labels_by_number")
    changed = cells.group_by(same).agg(pl.col("data_hash").n_unique())
    for model, data, first, last, *_, hashes in changed.iter_rows():
        if hashes > 1:
            raise BadInput(
                f"images {first}:{last} of {data} for {model} are not the same in all cells: the "
                "data changed between runs; choose one with --where data_hash=..."
            )
    return cells


def _split(
    frame: "pl.DataFrame", unit: Unit, cells: "pl.DataFrame"
) -> Iterator[tuple[str, Task, int, Run, Indices]]:
    """Label, task, seed, run and images with an error; rows of a cell stand together."""
    columns = _columns(frame, unit)
    error = frame["error"].to_numpy()
    chunks = frame["cell"].rle().struct.unnest()
    columns["batch_share"] = _batch_shares(chunks, cells)
    ends = np.cumsum(chunks["len"].to_numpy()).tolist()
    starts = [0, *ends[:-1]]
    parts = dict(zip(chunks["value"], map(slice, starts, ends), strict=True))
    of_runs: dict[tuple[Any, ...], list[slice]] = {}
    for key, *about in cells.select("cell", "name", *_TASK, "seed").iter_rows():
        of_runs.setdefault(tuple(about), []).append(parts[key])
    for (label, *names, seed), slices in of_runs.items():
        slices.sort(key=lambda part: columns["index"][part.start])
        run = Run(**{name: _gather(values, slices) for name, values in columns.items()})
        wrong = _gather(error, slices)
        failed = run.index[wrong]
        if len(failed):
            run = run.rows(~wrong)
        if (np.diff(run.index) < 0).any():
            run = run.rows(np.argsort(run.index, kind="stable"))
        _refuse_twice(run, label, Task(*names))
        yield label, Task(*names), seed, run, np.sort(failed)


def _gather(values: NDArray[Any], slices: Sequence[slice]) -> NDArray[Any]:
    """The values of several slices; those of a single one are not copied."""
    parts = [values[part] for part in slices]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _batch_shares(chunks: "pl.DataFrame", cells: "pl.DataFrame") -> Numbers:
    """Per row, 1 over the rows of its batch. A cell is cut into batches from its first row on."""
    sizes = dict(cells.select("cell", "batch_size").iter_rows())
    shares: dict[tuple[int, int], Numbers] = {}  # few, as most cells are alike
    keys = [(rows, sizes.get(cell, 1)) for rows, cell in chunks.select("len", "value").iter_rows()]
    for rows, size in set(keys):
        batches = np.minimum(size, rows - np.arange(0, rows, size))
        shares[rows, size] = np.repeat(1 / batches, batches)
    return np.concatenate([np.array([]), *map(shares.__getitem__, keys)])


def _columns(frame: "pl.DataFrame", unit: Unit) -> dict[str, NDArray[Any]]:
    """The columns of a run; rows with an error hold anything."""
    import polars as pl

    def needed(column: str) -> pl.Expr:
        units = pl.when("success").then(pl.col(column).cast(pl.Float64)).otherwise(np.inf)
        return pl.when("correct").then(units.fill_null(np.inf)).otherwise(0.0).alias(column)

    plain = frame.select(
        pl.col("index"),
        pl.col("correct", "skipped").fill_null(False),
        pl.col(_COUNTS).fill_null(0),
        needed("pixels"),
        needed("elements"),
        pl.when("success")
        .then(pl.col("first_success_forwards").cast(pl.Float64).fill_null(np.nan))
        .otherwise(np.inf)
        .alias("first_success"),
    )
    columns = {name: plain[name].to_numpy() for name in plain.columns}
    columns["fewest"] = columns[unit]
    if "fewest" in frame.columns:
        seen = frame["fewest"].cast(pl.Float64).fill_null(np.inf).to_numpy()
        columns["fewest"] = np.minimum(columns[unit], seen)
    return columns


def _refuse_twice(run: Run, label: str, task: Task) -> None:
    twice = run.index[1:][np.diff(run.index) == 0]
    if len(twice):
        raise BadInput(
            f"{label} on {task.model} has several rows for image {twice[0]} of {task.data} with "
            "one seed, from cells that differ in batch size, threads, precision, device, speed or "
            "range; choose some of them, as with --where device=cpu"
        )


def image_sizes(rows: "pl.LazyFrame", cells: "pl.DataFrame") -> dict[Task, tuple[int, int]]:
    """Pixels and elements of an image of each task."""
    import polars as pl

    shapes = rows.select("cell", "shape").drop_nulls().group_by("cell").agg(pl.first("shape"))
    found = shapes.collect().join(cells.select("cell", *_TASK), on="cell")
    sizes = {}
    for (channels, height, width), *task in found.select("shape", *_TASK).iter_rows():
        sizes[Task(*task)] = (height * width, channels * height * width)
    return sizes
