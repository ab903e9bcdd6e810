"""Verify a store: rebuild every adversarial image, and compare the models' predictions.

Rows are judged in the batches that they were made in, with the same number of threads. So on the
same kind of machine every logit is the same bit for bit.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TypeVar

import torch

from pinprick.arithmetic import arithmetic
from pinprick.bench.cache import Cache, LabelledImages, device_here
from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import Damaged, Origin
from pinprick.bench.judge_rows import Judge, judge_batch, logits_of
from pinprick.bench.row_schema import ROWS
from pinprick.bench.store import Store, existing_store
from pinprick.bench.store_index import cells_frame
from pinprick.bench.stored_rows import CleanBatch, StoredRows
from pinprick.bench.verification import NotVerified, Verification
from pinprick.bench.weights_command import weights_command
from pinprick.errors import BadInput, NotTrusted, PinprickError
from pinprick.jobs.progress import Advance, Progress
from pinprick.model import Classifier
from pinprick.numerical_noise import measure_noise
from pinprick.report.read_runs import choose_cells
from pinprick.threads import limited_threads
from pinprick.types import Images, Logits

Entry = TypeVar("Entry")


def verify_store(
    folder: str | Path,
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    root: Path | None = None,
    trust: bool = False,
    progress: Progress | None = None,
) -> Verification:
    """Rebuild and judge every row of a store, or of some of its cells.

    A cell that was made on a GPU is verified on one, or on the CPU where there is none.

    Args:
        folder: The folder of the store.
        where: Values of columns of cells, as in ``{"model": ["a", "b"]}``; other cells are left
            out. Files that cannot be read are named in any case.
        root: The folder that datasets are kept in; None for the default.
        trust: Load model files that are programs, too.
        progress: Told how many images are done.
    """
    store = existing_store(folder)
    found = store.cells()
    unreadable = [store.path(key) for key in store.keys() if key not in found]  # noqa: SIM118
    outcome = Verification(damaged=[*store.foreign(), *unreadable])
    if not found and not outcome.damaged:
        raise BadInput(f"the store {folder} has no finished cells: there is nothing to verify")
    origins = {key: origin for key, (_, origin) in found.items()}
    cells = sorted(chosen_cells([cell for cell, _ in found.values()], where), key=_task)
    with (progress or Progress()).count_images(_count(cells), "verifying") as advance:
        for _, of_model in groupby(cells, key=lambda cell: (cell.model, cell.weights)):
            work = _OneModel(store, Cache(root, trust=trust), origins, outcome, advance)
            for _, on_images in groupby(of_model, key=_task):
                work.verify(list(on_images))
    return outcome


def chosen_cells(
    cells: Sequence[Cell], where: Mapping[str, Sequence[str]] | None
) -> Sequence[Cell]:
    """The cells that have these values of columns; ``BadInput`` if there are none."""
    if not where:
        return cells
    keys = set(choose_cells(cells_frame(cells), where)["cell"])
    return [cell for cell in cells if cell.key in keys]


def _task(cell: Cell) -> tuple[Any, ...]:
    """What cells share whose clean images are judged together."""
    return (
        *(cell.model, cell.weights, cell.device, cell.threads, cell.data, cell.data_hash),
        *(cell.first, cell.last, cell.batch_size, cell.victims),
    )


class _OneModel:
    """Verifies all cells of one model; the model and its victims are loaded once."""

    def __init__(
        self,
        store: Store,
        cache: Cache,
        origins: Mapping[str, Origin],
        outcome: Verification,
        advance: Advance,
    ) -> None:
        self._store, self._cache, self._origins = store, cache, origins
        self._outcome, self._advance = outcome, advance
        self._noise: dict[str, float] = {}

    def verify(self, cells: Sequence[Cell]) -> None:
        """Verify cells that have model, victims and images in common."""
        here = replace(cells[0], device=device_here(cells[0].device))
        cache, model, given = self._cache, None, None
        with self._needed(cells, here.model, here.weights):
            model = cache.model_of(here)
        if model is not None:
            with self._needed(cells, here.data, here.data_hash, is_model=False):
                given = cache.images_of(here)
        if model is None or given is None:
            self._outcome.rows += _count(cells)
            self._advance(_count(cells))
            return
        victims: list[Classifier | None] = [None] * len(here.victims)
        for number, (name, weights) in enumerate(here.victims):
            with self._needed(cells, name, weights):
                victims[number] = cache.victims_of(replace(here, victims=((name, weights),)))[0]
        with limited_threads(here.threads), arithmetic(here.precision), ExitStack() as frozen:
            for one in (model, *victims):
                if one is not None:
                    frozen.enter_context(one.frozen())
            batches = [
                _ask(given, slice(start, start + here.batch_size), model, victims)
                for start in range(0, len(here), here.batch_size)
            ]
            first = batches[0]
            judge = self._judge(model, first.given.images, first.logits)
            others = [
                None if one is None else self._judge(one, first.given.images, logits)
                for one, logits in zip(victims, first.victims, strict=True)
            ]
            for cell, prepared in _one_ahead(self._prepare(cells, batches)):
                if prepared is None:
                    self._outcome.damaged.append(self._store.path(cell.key))
                    self._advance(len(cell))
                else:
                    self._verify_batch(*prepared, judge, others)

    def _prepare(
        self, cells: Sequence[Cell], batches: Sequence[CleanBatch]
    ) -> Iterator[tuple[Cell, tuple[StoredRows, CleanBatch] | None]]:
        """Each batch of each cell, with its clean images; None for a cell that is damaged."""
        for cell in cells:
            try:
                _, _, table = self._store.read(cell.key)
                sound = table.schema == ROWS and len(table) == len(cell)
            except Damaged:
                sound = False
            if not sound:
                yield cell, None
                continue
            for start, clean in zip(range(0, len(cell), cell.batch_size), batches, strict=True):
                rows = table.slice(start, cell.batch_size)
                yield cell, (StoredRows(cell, cell.first + start, rows, clean.given.images), clean)

    def _verify_batch(
        self, rows: StoredRows, clean: CleanBatch, model: Judge, victims: Sequence[Judge | None]
    ) -> None:
        self._outcome.rows += len(rows)
        self._outcome.errors += rows.errors
        self._outcome.unsaved += rows.unsaved
        self._outcome.verified += len(rows) - rows.errors - rows.unsaved
        self._outcome.findings += judge_batch(rows, clean, model, victims)
        self._advance(len(rows))

    def _judge(self, model: Classifier, images: Images, logits: Logits | None) -> Judge:
        if model.name not in self._noise:
            device = model.device or images.device
            known = None if logits is None else logits.to(device)
            self._noise[model.name] = measure_noise(model, images.to(device), known) or 0.0
        return Judge(model, self._noise[model.name])

    @contextmanager
    def _needed(
        self, cells: Sequence[Cell], name: str, sha256: str, *, is_model: bool = True
    ) -> Iterator[None]:
        """Note that rows were not verified where what they need cannot be loaded."""
        try:
            yield
        except PinprickError as error:
            known = self._outcome.not_verified
            one = next((each for each in known if (each.name, each.sha256) == (name, sha256)), None)
            if one is None:
                version = self._origins[cells[0].key].version
                there = not is_model or isinstance(error, NotTrusted)
                command = "" if there else weights_command(name, version)
                one = NotVerified(name, sha256, str(error), command)
                known.append(one)
            one.rows += _count(cells)


def _ask(
    given: LabelledImages, rows: slice, model: Classifier, victims: Sequence[Classifier | None]
) -> CleanBatch:
    """One batch of clean images, with the logits of the models."""
    part = LabelledImages(given.images[rows], given.labels[rows], given.ids[rows])
    answers = [None if one is None else logits_of(one, part.images) for one in victims]
    return CleanBatch(part, logits_of(model, part.images), answers)


def _one_ahead(entries: Iterator[Entry]) -> Iterator[Entry]:
    """The entries, each made in a thread of its own while the one before it is used.

    That thread counts changes as the referee does: a subnormal number is not zero.
    """
    with ThreadPoolExecutor(1, initializer=torch.set_flush_denormal, initargs=(False,)) as maker:
        coming = maker.submit(list, islice(entries, 1))
        while made := coming.result():
            coming = maker.submit(list, islice(entries, 1))
            yield from made


def _count(cells: Sequence[Cell]) -> int:
    return sum(len(cell) for cell in cells)
