"""The rows of a benchmark store as arrays: one run per attack, task and seed.

Rows are read lazily with polars: only the columns that are needed, never the perturbations. A row
with an error is missing, and is no failure of the attack.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pinprick.errors import BadInput, UnknownName
from pinprick.metrics.needed import Numbers
from pinprick.metrics.outcomes import Outcomes
from pinprick.metrics.unit import Unit
from pinprick.report.attack_labels import attack_labels

if TYPE_CHECKING:
    import polars as pl

_LIMITS = ("max_forwards", "max_backwards", "max_passes")
ATTACK = ("attack", "settings", "revision", "code", *_LIMITS)
_TASK = ("model", "weights", "data", "goal")
_CELL = (*ATTACK, *_TASK, "data_hash", "first", "last", "seed", "batch_size", "threads")
CELL = (*_CELL, "precision", "device", "speed")  # columns by which rows can be chosen
_COUNTS = ("forwards", "backwards", "seconds")
_ROW = ("index", "correct", "skipped", "success", "pixels", "elements", *_COUNTS)


Indices = NDArray[np.int64]


class Task(NamedTuple):
    """What is attacked: a model on some data, with a goal."""

    model: str
    weights: str
    data: str
    goal: str


@dataclass(frozen=True, eq=False)
class Run:
    """One attack with one seed on one task, one entry per image.

    Attributes:
        index: The images, by their index in the data, ascending.
        correct, skipped: As in the rows.
        pixels, elements: Needed units: 0 where skipped, infinite where the attack failed.
        forwards, backwards, seconds: What each image cost.
        batch_share: 1 over the number of images in its batch.
        first_success: Forward passes up to the first success; infinite on failure, NaN if unknown.
        fewest: Needed units of the best image that the attack ever saw.
    """

    index: Indices
    correct: NDArray[np.bool_]
    skipped: NDArray[np.bool_]
    pixels: Numbers
    elements: Numbers
    forwards: Indices
    backwards: Indices
    seconds: Numbers
    batch_share: Numbers
    first_success: Numbers
    fewest: Numbers

    def on(self, images: Indices) -> "Run":
        """The run on some of its images."""
        return self.rows(rows_of(images, self.index))

    def rows(self, rows: NDArray[Any] | slice) -> "Run":
        return Run(**{name: values[rows] for name, values in vars(self).items()})

    def needed(self, unit: Unit) -> Numbers:
        return self.pixels if unit == "pixels" else self.elements

    def outcomes(self) -> Outcomes:
        return Outcomes(
            correct=self.correct,
            answered=np.ones_like(self.correct),
            attacked=~self.skipped,
            pixels=self.pixels,
            elements=self.elements,
            forwards=self.forwards,
            backwards=self.backwards,
            seconds=float(self.seconds.sum()),
        )


def rows_of(images: Indices, index: Indices) -> Indices | slice:
    """Where the images are in an ascending array that holds all of them."""
    return slice(None) if len(images) == len(index) else np.searchsorted(index, images)


def shared_images(of_each: Sequence[Indices]) -> Indices:
    """The images that are in all of several ascending arrays."""
    return _joined(np.intersect1d, of_each)


def any_images(of_each: Sequence[Indices]) -> Indices:
    """The images that are in any of several ascending arrays."""
    return _joined(np.union1d, [images for images in of_each if len(images)])


def _joined(join: Callable[[Indices, Indices], Indices], of_each: Sequence[Indices]) -> Indices:
    """One after the other; equal arrays, which are the rule, cost nothing."""
    joined = of_each[0] if len(of_each) else np.array([], dtype=np.int64)
    for images in of_each[1:]:
        if not np.array_equal(joined, images):
            joined = join(joined, images)
    return joined


Seeds = Mapping[int, Run]


@dataclass(frozen=True, eq=False)
class StoreRuns:
    """All runs of a store.

    Attributes:
        attacks: Names of the attacks, with the settings in which those of one name differ.
        tasks: What is attacked, in order.
        runs: The runs by attack and task, and then by seed.
        errors: Rows with an error, by attack and task; 0 where all went well.
        images: All images of each task, also those with an error.
    """

    attacks: tuple[str, ...]
    tasks: tuple[Task, ...]
    runs: Mapping[tuple[str, Task], Seeds]
    errors: Mapping[tuple[str, Task], int]
    images: Mapping[Task, Indices]

    def part(self, tasks: Sequence[Task]) -> "StoreRuns":
        """The runs on some tasks, and the attacks that were run on them."""
        attacks = {attack for attack, task in self.errors if task in tasks}
        return StoreRuns(
            tuple(sorted(attacks)),
            tuple(tasks),
            {key: runs for key, runs in self.runs.items() if key[1] in tasks},
            {key: count for key, count in self.errors.items() if key[1] in tasks},
            {task: images for task, images in self.images.items() if task in tasks},
        )


def choose_cells(
    cells: "pl.DataFrame",
    where: Mapping[str, Sequence[str]] | None = None,
    attacks: Sequence[str] | None = None,
) -> "pl.DataFrame":
    """Some of the cells of a store, each with the ``name`` of its attack.

    The seed decides random targets, so each seed is a goal of its own there, with one seed.

    Args:
        cells: The cells, as ``Store.rows_and_cells`` gives them.
        where: Values of columns of cells; other cells are left out.
        attacks: The attacks to choose, by name, with or without settings; None for all.
    """
    import polars as pl

    cells = _choose(cells.select("cell", *CELL, "victim_models"), where or {})
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
    return cells.with_columns(
        goal=pl.when(random).then(seeded).otherwise("goal"),
        seed=pl.when(random).then(0).otherwise("seed"),
    )


def read_runs(
    rows: "pl.LazyFrame", cells: "pl.DataFrame", unit: Unit, *, best_so_far: bool = False
) -> StoreRuns:
    """The runs of some cells.

    Args:
        rows: The rows.
        cells: The cells, as ``choose_cells`` gives them.
        unit: The unit of ``Run.fewest``.
        best_so_far: Whether ``Run.fewest`` counts images that the attack saw and did not return.
    """
    import polars as pl

    wanted = [pl.col("cell"), pl.col("error").str.len_bytes() > 0]
    wanted += [pl.col(name) for name in (*_ROW, "first_success_forwards")]
    if best_so_far:
        wanted.append(pl.col("steps").list.last().struct.field(unit).alias("fewest"))
    frame = rows.select(wanted).collect()
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
    changed = cells.group_by("model", "weights", "data", "first", "last").agg(
        pl.col("data_hash").n_unique()
    )
    for model, _, data, first, last, hashes in changed.iter_rows():
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
        return pl.when("skipped").then(0.0).otherwise(units).fill_null(np.inf).alias(column)

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
