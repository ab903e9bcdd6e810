"""The TOML file of a plan, read and checked: a mistake is reported with line and nearest name.

models = ["pinprick:mnist_cnn"]
data = ["mnist/test[0:200]"]
attacks = ["sigma_zero", {name = "greedy", preset = "quick"}, "my_attack.py:Mine"]
goals = ["untargeted", "least_likely", "random", "class 3"]
seeds = [0, 1, 2]

[[product]]                 # any number of these; keys above them hold for all
victims = ["pinprick:mnist_cnn_pgd_at"]
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pinprick.attacks.build import build
from pinprick.attacks.card import Attack
from pinprick.bench.plan import CLASS, Plan, Product, located
from pinprick.data import subset
from pinprick.errors import BadInput, PinprickError, UnknownName
from pinprick.files import reading
from pinprick.speed_names import SPEEDS

GOALS = ("untargeted", "least_likely", "random")
_PRODUCT = "product"
_MOST = 2**63 - 1  # that a column of a store can hold


def read_plan(path: str | Path) -> Plan:
    """The plan in a TOML file; ``BadInput`` with line and nearest name where it is wrong."""
    path = Path(path)
    with reading(path):
        content = path.read_bytes()
    try:
        text = content.decode()
        values = tomllib.loads(text)
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:  # which names line and column
        raise BadInput(f"{path} is not TOML: {error}") from None
    shared = {key: value for key, value in values.items() if key != _PRODUCT}
    tables = values.get(_PRODUCT, [{}])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        wrong = BadInput(f"write [[{_PRODUCT}]], with two brackets on each side")
        raise located(path, text, _PRODUCT, (1, _end(text)), wrong)
    starts = _headers(text) or [_end(text)]
    _read_keys(shared, path, text, (1, starts[0]), whole=False)
    products = []
    for number, table in enumerate(tables):
        start = starts[min(number, len(starts) - 1)]
        end = starts[number + 1] if number + 1 < len(starts) else _end(text)
        _read_keys(table, path, text, (start, end), whole=False)
        lines = (1, end) if shared else (start, end)
        products.append(_read_keys({**shared, **table}, path, text, lines, whole=True))
    return Plan(path=path, text=text, products=tuple(one for one in products if one is not None))


def _read_keys(
    values: Mapping[str, Any], path: Path, text: str, lines: tuple[int, int], *, whole: bool
) -> Product | None:
    """The product that these keys describe; None where the other keys follow in a table."""
    read: dict[str, Any] = {}
    for key, value in values.items():
        try:
            if key not in _READERS:
                raise UnknownName("key of a plan", key, [*_READERS, _PRODUCT])
            read[key] = _READERS[key](key, value)
        except _Wrong as error:
            raise located(path, text, error.word, lines, error) from error.__cause__
        except PinprickError as error:
            raise located(path, text, key, lines, error) from error
    if not whole:
        return None
    for key in ("models", "data", "attacks"):
        if not read.get(key):
            raise BadInput(f"{path} names no {key}; write {key} = [...]")
    one = Product(**read, lines=lines)
    for attack in one.attacks:
        targeted = [goal for goal in one.goals if goal != "untargeted"]
        if targeted and not attack.facts().targeted:
            wrong = BadInput(
                f"{attack.full_name()} cannot aim at a class, but goals has {targeted[0]!r}; "
                "give it a product of its own"
            )
            raise located(path, text, attack.full_name(), lines, wrong)
    return one


class _Wrong(BadInput):
    """A value that is wrong, and the word in the file to find it by."""

    def __init__(self, message: object, word: str) -> None:
        self.word = word
        super().__init__(str(message))


def _end(text: str) -> int:
    return len(text.splitlines()) + 1


def _headers(text: str) -> list[int]:
    """The lines of all ``[[product]]``."""
    pattern = re.compile(rf"\s*\[\[\s*{_PRODUCT}\s*\]\]")
    return [n for n, line in enumerate(text.splitlines(), start=1) if pattern.match(line)]


def _texts(key: str, value: Any) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise BadInput(f"{key} must be a list of names, got {value!r}")
    return tuple(dict.fromkeys(values))


def _subsets(key: str, value: Any) -> tuple[str, ...]:
    described = []
    for text in _texts(key, value):
        try:
            described.append(subset.describe(subset.parse(text)))
        except PinprickError as error:
            raise _Wrong(error, text) from error
    return tuple(described)


def _goals(key: str, value: Any) -> tuple[str, ...]:
    goals = _texts(key, value)
    for goal in goals:
        if goal not in GOALS and not CLASS.fullmatch(goal):
            raise _Wrong(UnknownName("goal", goal, [*GOALS, "class 3"]), goal)
    return goals


def _attacks(key: str, value: Any) -> tuple[Attack, ...]:
    specs = value if isinstance(value, list) else [value]
    attacks = []
    for spec in specs:
        name = spec.get("name") if isinstance(spec, dict) else spec
        if not isinstance(name, str):
            raise BadInput(f"{key} holds names and tables with a name, got {spec!r}")
        try:
            attacks.append(build(spec))
        except PinprickError as error:
            settings = [one for one in spec if one != "name"] if isinstance(spec, dict) else []
            meant = (one for one in settings if re.search(rf"\b{re.escape(one)}\b", str(error)))
            raise _Wrong(error, next(meant, name)) from error
    return tuple(attacks)


def _seeds(key: str, value: Any) -> tuple[int, ...]:
    values: Sequence[Any] = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(_at_least(0)(key, one) for one in values))


def _at_least(least: int, *, most: int = _MOST) -> Callable[[str, Any], int]:
    def read(key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BadInput(f"{key} must be a whole number of at least {least}, got {value!r}")
        if value > most:
            raise BadInput(f"{key} must be at most {most}, got {value!r}")
        return value

    return read


def _one_of(*choices: str) -> Callable[[str, Any], str]:
    def read(key: str, value: Any) -> str:
        if value not in choices:
            raise BadInput(f"{key} must be {' or '.join(choices)}, got {value!r}")
        return str(value)

    return read


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{key} must be true or false, got {value!r}")
    return value


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "models": _texts,
    "data": _subsets,
    "attacks": _attacks,
    "goals": _goals,
    "seeds": _seeds,
    "victims": _texts,
    "images_per_cell": _at_least(1),
    "batch_size": _at_least(1),
    "threads": _at_least(1, most=1024),
    "device": _one_of("cpu", "cuda"),
    "precision": _one_of("float32", "tf32"),
    "max_forwards": _at_least(1),
    "max_backwards": _at_least(1),
    "max_passes": _at_least(1),
    "speed": _one_of(*SPEEDS),
    "dense": _flag,
    "labels_by_number": _flag,
}
