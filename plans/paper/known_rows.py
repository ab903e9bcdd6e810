"""Cells that need not be run: rows of their images exist already, here or in another store."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pinprick.bench.cache import Cache
from pinprick.bench.cell import Cell
from pinprick.bench.judge_saved import attack_key, judge_saved, with_columns
from pinprick.bench.store import Store


def without_measured(cells: Iterable[Cell], store: Store) -> list[Cell]:
    """The cells whose images have no rows yet, on whichever device."""
    known: dict[str, list[Cell]] = {}
    for cell, _ in store.cells().values():
        known.setdefault(_task(cell), []).append(cell)
    return [
        cell
        for cell in cells
        if not any(
            one.first <= cell.first and cell.last <= one.last for one in known.get(_task(cell), [])
        )
    ]


def _task(cell: Cell) -> str:
    """All that decides the rows of a cell but its device and its share of the images."""
    anywhere = replace(cell, device="", precision="", data_hash="", first=0, last=0)
    return anywhere.key


def take_over(
    cells: Iterable[Cell], store: Store, others: Sequence[Path], cache: Cache | None = None
) -> int:
    """Take finished cells from other stores; the number of those that were taken.

    For a cell with victims the rows of the same attack without victims will do, with every
    perturbation. Its victims are queried then.
    """
    found, sources = 0, [Store(folder) for folder in others if folder.is_dir()]
    same = {
        attack_key(cell): (source, cell)
        for source in sources
        for cell, _ in source.cells().values()
    }
    for cell in cells:
        if store.has(cell):
            continue
        source = next((one for one in sources if one.has(cell)), None)
        if source is not None:
            path = store.path(cell.key)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.path(cell.key), path)
            found += 1
        elif cell.victims and attack_key(cell) in same:
            judged = judge_saved(cell, *same[attack_key(cell)], cache)
            if judged is not None:
                store.write(cell, *judged)
                found += 1
    return found


def without_victims(cells: Iterable[Cell], store: Store) -> int:
    """Write cells without victims from those of the same attack with victims; how many there were.

    An attack does not depend on who judges its images. Rows of a CPU become a cell of a CPU, as
    long as the wanted cell itself has no rows.
    """
    judged: dict[str, list[Cell]] = {}
    for cell, _ in store.cells().values():
        if cell.victims:
            judged.setdefault(_images_attacked(cell), []).append(cell)
    found = 0
    for cell in cells:
        sources = [] if cell.victims or store.has(cell) else judged.get(_images_attacked(cell), [])
        for source in sources:
            same = replace(cell, device=source.device, precision=source.precision)
            if store.has(source) and not store.has(same):
                _, origin, table = store.read(source.key)
                nobody: list[list[int]] = [[]] * len(same)
                changed = {
                    "cell": [same.key] * len(same),
                    "index": range(same.first, same.last),
                    "victims": nobody,
                    "victims_clean": nobody,
                }
                store.write(same, with_columns(table, changed), origin)
                found += 1
    return found


def _images_attacked(cell: Cell) -> str:
    """All that decides an attack on these very images but its device."""
    return attack_key(replace(cell, device="", precision=""))
