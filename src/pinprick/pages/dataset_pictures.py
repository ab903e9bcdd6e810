"""Clean images and names of classes for the rows of a store, from the datasets that cells name.

An image is shown only if the hash of its cell is that of the dataset.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pinprick.bench.store import Store
from pinprick.errors import PinprickError
from pinprick.pages.report_parts import Bytes

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class DatasetPictures:
    """The clean images of one subset, read when the first is asked for."""

    data: str
    store: Store
    cells: "pl.DataFrame"

    def clean(self, index: int) -> Bytes | None:
        """The image with this index in the dataset; None where it is not at hand."""
        return self._found[0].get(index)

    def class_name(self, number: int | None) -> str | None:
        """The name of a class as the models number it; its number where no name is known."""
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
    labels = dict(rows_of(store, [cell]).select("index", "label").collect().iter_rows())
    if any(labels.get(index) is None for index in indices):
        return None
    return np.array([labels[index] for index in indices], dtype=np.int64)


def _images_hash(pixels: Any, labels: NDArray[np.int64]) -> str | None:
    """The hash of images and labels, as the cells of a store have it."""
    import torch

    from pinprick.saved_batches import tensors_sha256

    return tensors_sha256([("images", pixels.float() / 255), ("labels", torch.from_numpy(labels))])


def rows_of(store: Store, cells: Sequence[str]) -> "pl.LazyFrame":
    """The rows of some cells; no other file is opened."""
    import polars as pl

    return pl.scan_parquet([store.path(key) for key in cells], glob=False)
