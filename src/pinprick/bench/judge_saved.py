"""Rows of a cell with victims, from the rows of the same attack without victims.

An attack does not depend on who judges its images. Where its rows are stored with every
perturbation, only the victims are queried.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from pinprick.bench.cache import Cache, device_here
from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import Origin
from pinprick.bench.extra import needed
from pinprick.bench.rows import rebuild_images
from pinprick.bench.run_cell import predictions
from pinprick.bench.store import Store
from pinprick.types import Images

if TYPE_CHECKING:
    import pyarrow as pa


def attack_key(cell: Cell) -> str:
    """The same for cells that differ in their victims, or in the subset that has their images."""
    return replace(cell, victims=(), data="", first=0, last=len(cell)).key


def judge_saved(
    cell: Cell, store: Store, source: Cell, loaded: Cache | None = None
) -> "tuple[pa.Table, Origin] | None":
    """The rows of a cell, and where they come from.

    None if they cannot be made in this way: ``source`` is another attack, or some of its
    perturbations were not saved.

    Args:
        cell: The cell, with victims.
        store: The store that has the rows of the attack.
        source: The cell of these rows.
        loaded: Models and images that are loaded already.
    """
    cache, here = loaded or Cache(), replace(cell, device=device_here(cell.device))
    given, theirs = cache.images_of(cell), cache.images_of(source)
    if attack_key(cell) != attack_key(source) or not given.ids.equal(theirs.ids):
        return None
    _, origin, table = store.read(source.key)
    adv, rebuilt = rebuild_images(table, given.images)
    if not rebuilt.all():
        return None
    victims = cache.victims_of(here)

    def classes(images: Images) -> list[list[int]]:
        parts = images.split(cell.batch_size)
        judged = [[predictions(one, part) for one in victims] for part in parts]
        return torch.cat([torch.stack(one, dim=1) for one in judged]).tolist()

    changed = {
        "cell": [cell.key] * len(cell),
        "index": range(cell.first, cell.last),
        "victims": classes(adv),
        "victims_clean": classes(given.images),
    }
    judges = origin.device if here.device == "cuda" else "cpu"
    device = f"{origin.device}, victims on {judges}"
    return with_columns(table, changed), replace(origin, device=device)


def with_columns(table: "pa.Table", changed: Mapping[str, Sequence[Any]]) -> "pa.Table":
    """The table with other values in these columns."""
    for name, values in changed.items():
        field = table.schema.field(name)
        column = needed("pyarrow").array(values, field.type)
        table = table.set_column(table.schema.get_field_index(name), field, column)
    return table
