"""Runs and images from a benchmark store.

Numbers of all images are read for the plots. Perturbations are read for the images of the gallery
alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pinprick.bench.store import Store
from pinprick.data.subset import describe, parse
from pinprick.errors import BadInput
from pinprick.metrics.outcomes import Outcomes
from pinprick.pages.dataset_pictures import DatasetPictures, rows_of
from pinprick.pages.report_parts import Bytes, Change, Entry, ReportRun, Source, Status, Steps, Task
from pinprick.report.read_runs import choose_cells, image_sizes, one_of_alike, read_runs
from pinprick.report.store_runs import Run
from pinprick.report.store_runs import Task as StoreTask
from pinprick.report.transfer_table import transfer_lines, transfer_matrix

if TYPE_CHECKING:
    import polars as pl

_RUN = ("name", "model", "weights", "data", "goal", "seed")
_PICTURED = (
    *("label", "target", "clean_class", "adversarial_class", "skipped", "success", "success_8bit"),
    *("pixels", "elements", "clean_confidence", "adversarial_confidence", "margin", "forwards"),
    *("backwards", "remark", "error", "positions", "values", "shape"),
)
_NO_OUTCOMES = Outcomes(
    correct=np.empty(0, dtype=bool),
    answered=np.empty(0, dtype=bool),
    attacked=np.empty(0, dtype=bool),
    pixels=np.empty(0),
    elements=np.empty(0),
    forwards=np.empty(0, dtype=np.int64),
    backwards=np.empty(0, dtype=np.int64),
    seconds=0.0,
)


def read_store(store: Store, name: str) -> Source:
    """All runs of a store."""
    rows, cells = store.rows_and_cells(whole=True)
    every = choose_cells(cells)
    cells = one_of_alike(rows, every)
    found = read_runs(rows, cells, "pixels")
    if not found.runs:
        raise BadInput(
            f"every row has an error; to list them: pinprick bench status PLAN --store {name}"
        )
    frame = rows.select("cell", "index", "success", "skipped", "success_8bit", "error", "steps")
    several = _tasks_by_weights(found.tasks)
    datasets = {data: DatasetPictures(data, store, cells) for data in sorted(set(cells["data"]))}
    of_runs = {
        tuple(key): part
        for key, part in frame.join(cells.lazy().select("cell", *_RUN), on="cell")
        .collect()
        .partition_by(*_RUN, as_dict=True)
        .items()
    }
    sizes = image_sizes(rows, cells)
    runs = []
    for (attack, *names, seed), part in of_runs.items():
        task = StoreTask(*names)
        run = found.runs.get((attack, task), {}).get(seed)
        report_run = _report_run(attack, several[task], seed, run, part.sort("index"), task.data)
        if task in sizes:
            report_run = replace(report_run, elements=sizes[task][1])
        read = partial(_entries, store, part["cell"].unique().to_list(), datasets[task.data])
        runs.append((report_run, read))
    return Source(
        name=name,
        runs=runs,
        transfers=transfer_lines(transfer_matrix(rows, every)),
    )


def _tasks_by_weights(tasks: Sequence[StoreTask]) -> dict[StoreTask, Task]:
    """The tasks of the report; a model with several weights has their hash behind its name."""
    weights: dict[str, set[str]] = {}
    for task in tasks:
        weights.setdefault(task.model, set()).add(task.weights)
    return {
        task: Task(
            task.model if len(weights[task.model]) == 1 else f"{task.model} ({task.weights[:8]})",
            task.data,
            task.goal.replace("_", " "),
        )
        for task in tasks
    }


def _report_run(
    attack: str, task: Task, seed: int, run: Run | None, part: "pl.DataFrame", data: str
) -> ReportRun:
    """A run and its rows by index; without a run every row has an error."""
    import polars as pl

    sound = part.filter(pl.col("error") == "")
    lost = pl.col("success") & ~pl.col("skipped") & ~pl.col("success_8bit")
    return ReportRun(
        task=task,
        attack=attack,
        settings={},
        seed=seed,
        images=() if run is None else tuple(image_names(data, run.index.tolist())),
        outcomes=_NO_OUTCOMES if run is None else run.outcomes(),
        first_success=np.empty(0) if run is None else run.first_success,
        lost_as_png=sound.select(lost.fill_null(False).alias("lost"))["lost"].to_numpy(),
        failed=tuple(image_names(data, part.filter(pl.col("error") != "")["index"].to_list())),
        steps=_steps(sound),
    )


def image_names(data: str, indices: Sequence[int]) -> Iterator[str]:
    """Names such as "cifar10/test[17]", which documents use as well."""
    subset = parse(data)
    whole = describe(type(subset)(subset.name, subset.split, ()))
    return (f"{whole}[{index}]" for index in indices)


def _steps(part: "pl.DataFrame") -> Steps | None:
    import polars as pl

    exploded = (
        part.select("steps")
        .with_row_index("image")
        .filter(pl.col("steps").list.len() > 0)
        .explode("steps")
        .unnest("steps")
    )
    if not len(exploded):
        return None
    column = {name: exploded[name].to_numpy() for name in exploded.columns}
    return Steps(
        image=column["image"].astype(np.int64),
        passes=column["forwards"] + column["backwards"],
        pixels=column["pixels"].astype(np.float64),
        elements=column["elements"].astype(np.float64),
    )


def _entries(
    store: Store, cells: Sequence[str], pictures: DatasetPictures, wanted: Sequence[str]
) -> list[Entry]:
    """What one run did to some images."""
    import polars as pl

    indices = [int(name.rpartition("[")[2].removesuffix("]")) for name in wanted]
    found = (
        rows_of(store, cells)
        .filter(pl.col("index").is_in(indices))
        .select("index", *_PICTURED)
        .collect()
    )
    by_index = {row["index"]: row for row in found.iter_rows(named=True)}
    names = dict(zip(indices, wanted, strict=True))
    return [_entry(row, names[at], pictures) for at in indices if (row := by_index.get(at))]


def _entry(row: Mapping[str, Any], image: str, pictures: DatasetPictures) -> Entry:
    if row["error"]:
        return Entry(
            image=image,
            name=image,
            status="error",
            remark=row["error"],
            picture=pictures.clean(row["index"]),
        )
    status: Status = "skipped" if row["skipped"] else "fooled" if row["success"] else "not fooled"
    clean = pictures.clean(row["index"])
    if clean is not None and row["shape"] != [clean.shape[2], *clean.shape[:2]]:
        clean = None
    counted = status == "fooled"
    return Entry(
        image=image,
        name=image,
        status=status,
        png=row["success_8bit"] if counted else None,
        pixels=row["pixels"] if counted else None,
        elements=row["elements"] if counted else None,
        forwards=row["forwards"],
        backwards=row["backwards"],
        margin=row["margin"],
        label=pictures.class_name(row["label"]),
        target=pictures.class_name(row["target"]),
        clean=pictures.class_name(row["clean_class"]),
        adversarial=pictures.class_name(row["adversarial_class"]),
        clean_confidence=row["clean_confidence"],
        adversarial_confidence=row["adversarial_confidence"],
        remark=row["remark"],
        picture=clean,
        change=_change(row, clean),
    )


def _change(row: Mapping[str, Any], clean: Bytes | None) -> Change | None:
    """The changed pixels; unchanged channels of theirs are as in the clean image."""
    if row["positions"] is None:
        return None
    channels, height, width = row["shape"]
    at, values = np.array(row["positions"], dtype=np.int64), np.array(row["values"])
    if len(at) and not (at.min() >= 0 and at.max() < channels * height * width):
        return None
    channel, place = np.divmod(at, height * width)
    pixels, which = np.unique(place, return_inverse=True)
    flat = None if clean is None else clean.reshape(-1, channels)[pixels]
    after = (
        np.zeros((len(pixels), channels), dtype=np.float32)
        if flat is None
        else flat.astype(np.float32) / 255
    )
    after[which, channel] = values
    return Change((height, width, channels), pixels.astype(np.uint32), flat, after)


def open_store(folder: Path) -> Source:
    """The runs of the store in a folder."""
    return read_store(Store(folder), str(folder))
