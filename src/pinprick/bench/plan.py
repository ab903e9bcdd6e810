"""A plan: products of models, data, attacks, goals and seeds, and the cells they unfold into."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from pinprick.attacks.build import describe
from pinprick.attacks.card import Attack
from pinprick.bench.cache import Cache
from pinprick.bench.cell import Cell
from pinprick.bench.own_code_hash import own_code_hash
from pinprick.data.subset import parse
from pinprick.errors import BadInput, PinprickError
from pinprick.speed_names import Speed

CLASS = re.compile(r"class [0-9]{1,9}")  # a goal that is a given class


@dataclass(frozen=True, kw_only=True)
class Product:
    """One product of a plan; names as in the TOML file.

    Attributes:
        models: Names of the attacked models, as ``--model`` takes them.
        data: Subsets of datasets, as ``--data`` takes them.
        attacks: Names, or tables of ``name``, ``preset`` and settings.
        goals: "untargeted", "least_likely", "random", or a class such as "class 3".
        seeds: Seeds of the attacks and of random targets.
        victims: Models that judge the adversarial images of all other models.
        images_per_cell: Most images of one cell.
        batch_size: Images per batch.
        threads: CPU threads of each cell.
        device: "cpu" or "cuda".
        precision: On a GPU, "float32", or "tf32" for faster convolutions; a CPU has float32.
        max_forwards: Most forward passes per image.
        max_backwards: Most backward passes per image.
        max_passes: Most forward and backward passes per image, added up.
        speed: How the model is queried on a GPU, as in ``run_attack``; a CPU has exact passes.
        dense: Whether to save perturbations of over 1000 elements, or over a quarter of them.
        labels_by_number: Whether labels are the models' class numbers, whatever the names.
        lines: First line of this product in the file, and the line after its last.
    """

    models: tuple[str, ...]
    data: tuple[str, ...]
    attacks: tuple[Attack, ...]
    goals: tuple[str, ...] = ("untargeted",)
    seeds: tuple[int, ...] = (0,)
    victims: tuple[str, ...] = ()
    images_per_cell: int = 100
    batch_size: int = 32
    threads: int = 1
    device: str = "cpu"
    precision: str = "float32"
    max_forwards: int | None = None
    max_backwards: int | None = None
    max_passes: int | None = None
    speed: Speed = "exact"
    dense: bool = False
    labels_by_number: bool = False
    lines: tuple[int, int] = (1, 1)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a TOML file plans: one or more products, and the text for messages."""

    path: Path
    text: str
    products: tuple[Product, ...]

    def cells(self, loaded: Cache | None = None) -> tuple[Cell, ...]:
        """All cells, each once, in the order in which they run.

        Each attack comes on all models and data before the next, so that a run that is stopped
        lacks the last attacks. Models and images are loaded for their hashes.

        Raises ``BadInput`` with the line of a model or subset that cannot be loaded.
        """
        cache = loaded or Cache()
        each = [found for one in self.products for found in self._cells(one, cache)]
        each.sort(key=lambda found: found[0])
        return tuple(dict.fromkeys(cell for _, cell in each))

    def without_missing(self, loaded: Cache | None = None) -> "tuple[Plan, tuple[str, ...]]":
        """The part of the plan that can be loaded here, and the errors of the other parts."""
        cache, kept = loaded or Cache(), []
        missing: dict[str, None] = {}
        for one in self.products:
            for model, data in product(one.models, one.data):
                part = replace(one, models=(model,), data=(data,))
                try:
                    next(self._cells(part, cache))
                except PinprickError as error:
                    missing[str(error)] = None
                else:
                    kept.append(part)
        return replace(self, products=tuple(kept)), tuple(missing)

    def _cells(self, one: Product, cache: Cache) -> Iterator[tuple[int, Cell]]:
        """The cells of a product, each with the position of its attack in the list."""
        victims = []
        for name in one.victims:
            with self.at(name, one):
                victims.append((name, cache.weights(name)))
        for model, data in product(one.models, one.data):
            with self.at(model, one):
                cache.model(model)
                weights = cache.weights(model)
            with self.at(parse(data).name, one):
                total = len(cache.dataset(model, data, by_number=one.labels_by_number))
            self._check_targets(one, cache, model, data)
            for name in one.victims:
                with self.at(name, one):
                    _check_victim(cache, model, name, data, by_number=one.labels_by_number)
            hashes = {}
            for first, last in _ranges(total, one.images_per_cell):
                with self.at(parse(data).name, one):
                    given = cache.images(model, data, first, last, by_number=one.labels_by_number)
                    hashes[first, last] = given.sha256
            attacks = enumerate(one.attacks)
            for (position, attack), goal, seed in product(attacks, one.goals, one.seeds):
                for (first, last), data_hash in hashes.items():
                    cell = Cell(
                        attack=describe(attack),
                        revision=attack.facts().revision,
                        code=own_code_hash(attack),
                        model=model,
                        weights=weights,
                        data=data,
                        data_hash=data_hash,
                        first=first,
                        last=last,
                        goal=goal,
                        seed=seed,
                        batch_size=one.batch_size,
                        threads=one.threads,
                        precision=one.precision if one.device == "cuda" else "float32",
                        device=one.device,
                        max_forwards=one.max_forwards,
                        max_backwards=one.max_backwards,
                        max_passes=one.max_passes,
                        speed=one.speed if one.device == "cuda" else "exact",
                        victims=tuple(victim for victim in victims if victim[0] != model),
                        dense=one.dense,
                        labels_by_number=one.labels_by_number,
                    )
                    yield position, cell

    def _check_targets(self, one: Product, cache: Cache, model: str, data: str) -> None:
        images = cache.dataset(model, data, by_number=one.labels_by_number)
        classes = cache.model(model).classes
        for goal in filter(CLASS.fullmatch, one.goals):
            target = int(goal.removeprefix("class "))
            if classes and target >= len(classes):
                with self.at(goal, one):
                    raise BadInput(
                        f"{model} has no {goal}; its classes are 0 to {len(classes) - 1}"
                    )
            row = (images.labels == target).nonzero()
            if len(row):
                with self.at(parse(data).name, one):
                    raise BadInput(
                        f"{images.where(int(row[0]))} is of {goal} already; a target must be "
                        "another class: choose images of other classes, as in [class=cat|dog]"
                    )

    @contextmanager
    def at(self, word: str, one: Product) -> Iterator[None]:
        """Add the line of a model, a victim or a subset to errors."""
        try:
            yield
        except PinprickError as error:
            raise located(self.path, self.text, word, one.lines, error) from error


def located(path: Path, text: str, word: str, lines: tuple[int, int], error: Exception) -> BadInput:
    """The error with the line that holds ``word``: "plan.toml, line 4: ...".

    Args:
        path: The file.
        text: Its content.
        word: A key, or a text between quotation marks.
        lines: First line to search in, and the one after the last; the others come next.
        error: What is wrong.
    """
    first, last = lines
    pattern = re.compile(rf"(?<![\w:.-]){re.escape(word)}(?![\w:-])")
    found = [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(_without_comment(line))
    ]
    inside = [number for number in found if first <= number < last]
    where = f", line {(inside or found)[0]}" if found else ""
    return BadInput(f"{path}{where}: {error}")


def _without_comment(line: str) -> str:
    return line.partition(" #")[0] if not line.lstrip().startswith("#") else ""


def _ranges(total: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(0, total, size):
        yield first, min(first + size, total)


def _check_victim(cache: Cache, model: str, victim: str, data: str, *, by_number: bool) -> None:
    """Raise ``BadInput`` unless the victim takes the model's images and numbers their classes."""
    judge, size = cache.model(victim), cache.model(model).size
    if judge.size not in (None, size) and size is not None:
        raise BadInput(f"{victim} takes images of {judge.size}, but {model} of {size}")
    ours, theirs = (
        cache.dataset(name, data, by_number=by_number).labels for name in (model, victim)
    )
    if not ours.equal(theirs):
        raise BadInput(f"{victim} numbers the classes of {data} in another way than {model}")
