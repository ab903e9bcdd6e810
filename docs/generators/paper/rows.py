"""Rows of the paper's plans, by what a table asks for: model, goal and attack.

A table is laid out by the products of its plan. Small runs have other models and data in place of
those, product by product, so that their pages have the same layout.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pinprick.attacks.build import describe
from pinprick.attacks.card import Attack
from pinprick.bench.cell import Cell, canonical
from pinprick.bench.plan import Plan, Product
from pinprick.bench.plan_file import read_plan
from pinprick.bench.store import Store
from pinprick.data.subset import Range, parse

ROOT = Path(__file__).parents[3]
LIMIT = 2000  # passes per image, except for the paper's own settings
COLUMNS = (
    *("index", "label", "correct", "success", "success_8bit", "elements", "pixels", "shape"),
    *("forwards", "backwards", "first_success_forwards", "seconds", "adversarial_class"),
    *("victims", "victims_clean", "error"),
)

ARRAYS = ("image", "elements", "pixels", "passes", "first", "seconds", "survives")  # of a sample

Numbers = NDArray[np.float64]
Key = tuple[object, ...]
Label = TypeVar("Label", str, int)


@dataclass(frozen=True, eq=False)
class Sample:
    """What one attack with one seed did to the images that the model gets right.

    Attributes:
        image: The images, by their index in the whole set.
        elements, pixels: Needed units; infinite where the attack failed.
        passes: Forward and backward passes per image, added up.
        first: Forward passes up to the first success; infinite without success.
        seconds: Time per image.
        survives: Whether the image still fools after 8-bit rounding.
        total: Number of elements of an image.
        rows: All columns, for tables that need more.
    """

    image: NDArray[np.int64]
    elements: Numbers
    pixels: Numbers
    passes: Numbers
    first: Numbers
    seconds: Numbers
    survives: NDArray[np.bool_]
    total: int
    rows: dict[str, list[Any]]

    @property
    def n(self) -> int:
        return len(self.image)

    @property
    def fooled(self) -> NDArray[np.bool_]:
        return np.isfinite(self.elements)

    def on(self, images: Sequence[int]) -> "Sample":
        """The sample on some of its images."""
        return self.keep(np.isin(self.image, images))

    def keep(self, mask: NDArray[np.bool_]) -> "Sample":
        """The sample on the images of a mask."""
        return self.take(np.flatnonzero(mask))

    def take(self, places: NDArray[np.intp]) -> "Sample":
        """The sample on the images at these places, in their order."""
        rows = {name: [values[i] for i in places] for name, values in self.rows.items()}
        return replace(self, rows=rows, **{name: getattr(self, name)[places] for name in ARRAYS})


Samples = dict[int, Sample]  # by seed


class Rows:
    """The finished cells of a store, by what decides them.

    Of an image that has rows of a GPU and of a CPU, those of the GPU count. Of two cells of one
    device, the one with more images counts, as it does where it has victims.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._samples: dict[str, Sample] = {}

    @cached_property
    def _keys(self) -> dict[Key, list[str]]:
        found: dict[Key, list[str]] = {}
        if self.folder.is_dir():
            cells = Store(self.folder).cells()
            for key in sorted(cells, key=lambda key: _order(cells[key][0])):
                found.setdefault(_key_of(cells[key][0]), []).append(key)
        return found

    def cells(self) -> list[tuple[Cell, Any]]:
        """All cells, with the origin of their rows."""
        return list(Store(self.folder).cells().values()) if self.folder.is_dir() else []

    def samples(self, one: Product, model: str, data: str, attack: Attack, goal: str) -> Samples:
        """By seed, the rows of one attack of a product; a seed without rows is left out."""
        known = self.known(one, model, data, attack, goal)
        return {seed: join([self._read(key, data) for key in keys]) for seed, keys in known.items()}

    def known(
        self, one: Product, model: str, data: str, attack: Attack, goal: str
    ) -> dict[int, list[str]]:
        """By seed, the keys of the cells with these rows."""
        about = model, data, canonical(describe(attack)), attack.facts().revision, goal
        limits = one.max_passes, one.batch_size, bool(one.victims)
        found = {seed: self._keys.get((*about, seed, *limits), []) for seed in one.seeds}
        return {seed: keys for seed, keys in found.items() if keys}

    def _read(self, key: str, data: str) -> Sample:
        if key not in self._samples:
            cell, _, table = Store(self.folder).read(key)
            rows = table.select(COLUMNS).to_pydict() | {"device": [cell.device] * len(cell)}
            self._samples[key] = _sample(rows, _start(data))
        return self._samples[key]


@dataclass(frozen=True)
class Layout:
    """A plan as it was written, the same as it was run, and the rows.

    Attributes:
        plan: The plan in the repository.
        run: The plan that was run: the same, or a reduced one.
        rows: The rows.
    """

    plan: Plan
    run: Plan
    rows: Rows

    def attacks(self, *, model: str, goal: str = "untargeted", own: bool = False) -> list[str]:
        """Labels of the attacks that the plan has for a model and goal."""
        names = [
            label_of(attack)
            for written, _ in self._products(model, goal, own=own)
            for attack in written.attacks
        ]
        return list(dict.fromkeys(names))

    def find(
        self,
        model: str,
        goal: str,
        label: str,
        *,
        own: bool = False,
        where: Callable[[Product], bool] = lambda one: True,
    ) -> Samples:
        """By seed, what an attack did, over all products that have it."""
        found: dict[int, list[Sample]] = {}
        for written, run in self._products(model, goal, own=own):
            if where(written):
                for attack in run.attacks:
                    if label_of(attack) == label:
                        for data in run.data:
                            name = run_model(model, run)
                            samples = self.rows.samples(run, name, data, attack, goal)
                            for seed, sample in samples.items():
                                found.setdefault(seed, []).append(sample)
        return {seed: join(parts) for seed, parts in sorted(found.items())}

    def each(self, model: str) -> Iterator[tuple[Attack, Sample]]:
        """Every attack on a model with seed 0, for sweeps of settings."""
        for _, run in self._products(model, "untargeted", own=False, any_limit=True):
            for attack in run.attacks:
                for data in run.data:
                    name = run_model(model, run)
                    samples = self.rows.samples(run, name, data, attack, "untargeted")
                    if 0 in samples:
                        yield attack, samples[0]

    def _products(
        self, model: str, goal: str, *, own: bool, any_limit: bool = False
    ) -> Iterator[tuple[Product, Product]]:
        for written, run in zip(self.plan.products, self.run.products, strict=True):
            limited = any_limit or (written.max_passes != LIMIT) == own
            if model in written.models and goal in written.goals and limited:
                yield written, run


def layout(name: str, rows: Rows, reduce: Callable[[Plan], Plan] = lambda plan: plan) -> Layout:
    """The layout of one of the paper's plans."""
    plan = read_plan(ROOT / "plans" / "paper" / f"{name}.toml")
    return Layout(plan, reduce(plan), rows)


def run_model(model: str, run: Product) -> str:
    """The model that stands for ``model`` in the product that was run."""
    if model in run.models:
        return model
    return run.models[-1] if model.startswith("ensemble:") else run.models[0]


def label_of(attack: Attack) -> str:
    """What a table calls an attack: settings that differ by image size alone are left out."""
    name = attack.card.name
    if name == "onepixel":
        return f"{name}, k {attack.k}"  # type: ignore[attr-defined]
    sparsest = name == "wifgsm_printed" and attack.keep == "sparsest"  # type: ignore[attr-defined]
    return f"{name}, sparsest" if sparsest else name


def join(parts: Sequence[Sample]) -> Sample:
    """Several samples as one; of an image that is in two, the first counts."""
    if len(parts) == 1:
        return parts[0]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS
    }
    rows = {name: [value for part in parts for value in part.rows[name]] for name in parts[0].rows}
    joined = replace(parts[0], rows=rows, **arrays)
    first = np.zeros(len(joined.image), dtype=bool)
    first[np.unique(joined.image, return_index=True)[1]] = True
    return joined.keep(first)


def on_shared_images(samples: Mapping[Label, Sample]) -> dict[Label, Sample]:
    """The samples on the images that all of them have, so that they can be compared."""
    if not samples:
        return {}
    images = reduce(np.intersect1d, (one.image for one in samples.values())).tolist()
    return {label: one.on(images) for label, one in samples.items()}


def on_both(first: Sample, second: Sample) -> tuple[Sample, Sample]:
    """Both samples on the images that both have, in the same order."""
    _, mine, theirs = np.intersect1d(first.image, second.image, return_indices=True)
    return first.take(mine), second.take(theirs)


def fooled_by_both(first: Sample, second: Sample) -> tuple[Sample, Sample]:
    """Both samples on the images that both attacks fool, in the same order."""
    return on_both(first.keep(first.fooled), second.keep(second.fooled))


def _order(cell: Cell) -> tuple[bool, int]:
    return cell.device != "cuda", -len(cell)


def _key_of(cell: Cell) -> Key:
    plain = canonical(cell.attack)
    limits = cell.max_passes, cell.batch_size, bool(cell.victims)
    return (cell.model, cell.data, plain, cell.revision, cell.goal, cell.seed, *limits)


def _start(data: str) -> int:
    """Where a subset begins in the whole set, so that images of two subsets can be told apart."""
    steps = parse(data).steps
    return steps[0].start if len(steps) == 1 and isinstance(steps[0], Range) else 0


def _sample(rows: dict[str, list[Any]], start: int) -> Sample:
    def numbers(name: str, missing: float) -> Numbers:
        return np.array([missing if one is None else one for one in rows[name]], dtype=float)

    success = np.array([bool(one) for one in rows["success"]])
    passes = numbers("forwards", 0) + numbers("backwards", 0)
    shape = next((one for one in rows["shape"] if one is not None), [0])
    every = Sample(
        image=np.array(rows["index"], dtype=np.int64) + start,
        elements=np.where(success, numbers("elements", np.inf), np.inf),
        pixels=np.where(success, numbers("pixels", np.inf), np.inf),
        passes=passes,
        first=np.where(success, numbers("first_success_forwards", np.inf), np.inf),
        seconds=numbers("seconds", np.nan),
        survives=np.array([bool(one) for one in rows["success_8bit"]]),
        total=int(np.prod(shape)),
        rows=rows,
    )
    return every.keep(np.array([bool(one) for one in rows["correct"]]))
