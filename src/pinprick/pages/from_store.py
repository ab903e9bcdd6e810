"""Runs and images from a benchmark store.

Numbers of all images are read for the plots. Perturbations are read for the images of the gallery
alone. Clean pictures come from the dataset that a cell names, if its hash is that of the cell.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pinprick.bench.store import Store
from pinprick.data.subset import describe, parse
from pinprick.errors import BadInput, PinprickError
from pinprick.metrics.outcomes import Outcomes
from pinprick.pages.report_parts import Bytes, Change, Entry, ReportRun, Source, Status, Steps, Task
from pinprick.report.read_runs import choose_cells, image_sizes, read_runs
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
    cells = choose_cells(cells)
    found = read_runs(rows, cells, "pixels")
    if not found.runs:
        raise BadInput(
            f"every row of {name} has an error; to list them: pinprick bench status {name}"
        )
    frame = rows.select("cell", "index", "success", "skipped", "success_8bit", "error", "steps")
    several = _tasks_by_weights(found.tasks)
    datasets = {data: _Pictures(data, store, cells) for data in sorted(set(cells["data"]))}
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
        transfers=transfer_lines(transfer_matrix(rows, cells)),
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
    store: Store, cells: Sequence[str], pictures: "_Pictures", wanted: Sequence[str]
) -> list[Entry]:
    """What one run did to some images."""
    import polars as pl

    indices = [int(name.rpartition("[")[2].removesuffix("]")) for name in wanted]
    found = (
        _rows_of(store, cells)
        .filter(pl.col("index").is_in(indices))
        .select("index", *_PICTURED)
        .collect()
    )
    by_index = {row["index"]: row for row in found.iter_rows(named=True)}
    names = dict(zip(indices, wanted, strict=True))
    return [_entry(row, names[at], pictures) for at in indices if (row := by_index.get(at))]


def _rows_of(store: Store, cells: Sequence[str]) -> "pl.LazyFrame":
    """The rows of some cells; no other file is opened."""
    import polars as pl

    return pl.scan_parquet([store.path(key) for key in cells], glob=False)


def _entry(row: Mapping[str, Any], image: str, pictures: "_Pictures") -> Entry:
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


@dataclass(frozen=True, eq=False)
class _Pictures:
    """The clean images of one subset, read when the first is asked for."""

    data: str
    store: Store
    cells: "pl.DataFrame"

    def clean(self, index: int) -> Bytes | None:
        """The image with this index in the dataset; None where it is not at hand."""
        return self._found[0].get(index)

    def class_name(self, number: int | None) -> str | None:
        return None if number is None else self._found[1].get(number, f"class {number}")

    @cached_property
    def _found(self) -> tuple[dict[int, Bytes], dict[int, str]]:
        """Images by index, and names of classes as the models number them.

        A name is known for the class of every image, since rows have labels in model numbers. All
        names are known where these are the numbers of the dataset.
        """
        import polars as pl

        from pinprick.data.select import load_subset

        try:
            subset = load_subset(self.data)
        except PinprickError:
            return {}, {}
        if subset.pixels is None:
            return {}, {}
        names: dict[int, str] = {}
        images: dict[int, Bytes] = {}
        indices, own_labels = subset.indices.tolist(), subset.labels.tolist()
        pixels = subset.pixels
        parts = self.cells.filter(pl.col("data") == self.data).sort("cell")
        done: set[str] = set()
        for key, first, last, digest in parts.select(
            "cell", "first", "last", "data_hash"
        ).iter_rows():
            if digest in done:
                continue
            labels = _labels(self.store, key, indices[first:last])
            if labels is None or digest != _images_hash(pixels[first:last], labels):
                continue
            done.add(digest)
            for at, label in zip(range(first, last), labels.tolist(), strict=True):
                images[indices[at]] = pixels[at].permute(1, 2, 0).numpy()
                if subset.classes:
                    names[label] = subset.class_name(own_labels[at])
        if names and all(
            subset.classes[number : number + 1] == (name,) for number, name in names.items()
        ):
            names = dict(enumerate(subset.classes))
        return images, names


def _labels(store: Store, cell: str, indices: Sequence[int]) -> NDArray[np.int64] | None:
    """The labels of a cell in the order of the subset; None if rows lack some."""
    labels = dict(_rows_of(store, [cell]).select("index", "label").collect().iter_rows())
    if any(labels.get(index) is None for index in indices):
        return None
    return np.array([labels[index] for index in indices], dtype=np.int64)


def _images_hash(pixels: Any, labels: NDArray[np.int64]) -> str | None:
    """The hash of images and labels, as the cells of a store have it."""
    import torch

    from pinprick.saved_batches import tensors_sha256

    return tensors_sha256([("images", pixels.float() / 255), ("labels", torch.from_numpy(labels))])


def open_store(folder: Path) -> Source:
    """The runs of the store in a folder."""
    return read_store(Store(folder), str(folder))
