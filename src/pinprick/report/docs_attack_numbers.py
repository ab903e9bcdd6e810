"""What a benchmark store says about each attack, for the attack's page."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from pinprick.attacks import ATTACKS
from pinprick.attacks.build import all_settings, build
from pinprick.attacks.card import Attack
from pinprick.metrics.estimate import Estimate
from pinprick.metrics.needed import Numbers, mean_needed, mean_over_fooled, median_needed
from pinprick.metrics.over_seeds import mean_and_deviation
from pinprick.metrics.unit import Unit
from pinprick.report.attack_board import AttackLine, attack_lines
from pinprick.report.coverage import Coverage, cover
from pinprick.report.docs_measured import markdown_table
from pinprick.report.read_runs import choose_cells, read_runs
from pinprick.report.store_runs import StoreRuns, Task
from pinprick.report.summary_tables import decimal_text, number_text, percent_text

if TYPE_CHECKING:
    import polars as pl

NOT_MEASURED = "Not measured."
_UNITS: tuple[Unit, ...] = get_args(Unit)


@dataclass(frozen=True, kw_only=True)
class UnitNumbers:
    """How many units an attack needed on one task.

    Attributes:
        mean: Infinite where the attack failed on an image.
        mean_of_fooled: Over fooled images alone.
        median: Failures count as infinite.
        optimality: Against the best of all attacks in the store.
    """

    mean: float
    mean_of_fooled: float
    median: float
    optimality: Estimate


@dataclass(frozen=True, kw_only=True)
class AttackNumbers:
    """One attack on one task; numbers are over images that were correct before the attack.

    Attributes:
        attack: Its name.
        settings: What differs from the defaults, in words, and the limits of passes.
        counts: The units that the attack keeps few: one, or both where that is unknown.
        task: Model, data and goal.
        correct, images: Images that were correct, of how many.
        fooling_rate: Of the correct images.
        units: By unit, how many were needed.
        forwards, backwards: Mean passes per image.
    """

    attack: str
    settings: tuple[str, ...]
    counts: tuple[Unit, ...]
    task: Task
    correct: int
    images: int
    fooling_rate: Estimate
    units: Mapping[Unit, UnitNumbers]
    forwards: float
    backwards: float


def attack_numbers(rows: "pl.LazyFrame", cells: "pl.DataFrame") -> list[AttackNumbers]:
    """The numbers of every attack and task of a store; ``Store.rows_and_cells`` gives both."""
    cells = choose_cells(cells)
    about = {
        row["name"]: (row["attack"], settings_words(row), _counts(row))
        for row in cells.unique("name").iter_rows(named=True)
    }
    stores = {unit: read_runs(rows, cells, unit) for unit in _UNITS}
    found = []
    for task in stores[_UNITS[0]].tasks:
        parts = {unit: store.part([task]) for unit, store in stores.items()}
        covered = {name: cover(parts["pixels"], name) for name in parts["pixels"].attacks}
        lines = {unit: _lines(part, covered, unit) for unit, part in parts.items()}
        for name, one in covered.items():
            if task in one.runs:
                found.append(_numbers(*about[name], task, one, {u: lines[u][name] for u in _UNITS}))
    return found


def settings_words(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The preset, or the settings that differ from the defaults, and the limit of passes."""
    given = json.loads(row["settings"])
    cls = ATTACKS.get(row["attack"])
    words = _nearest(cls, given) if cls else _plain_words(given)
    limits = {kind: row.get(f"max_{kind}") for kind in ("forwards", "backwards", "passes")}
    words += [f"at most {most} {kind}" for kind, most in limits.items() if most is not None]
    if cls is not None and row["revision"] != cls.card.revision:
        words.append(f"revision {row['revision']}; now it is {cls.card.revision}")
    return tuple(words)


def attack_block(found: Sequence[AttackNumbers], name: str) -> str:
    """The tables of one attack: one per unit and goal, one line per model and settings."""
    labels = _task_labels([one.task for one in found])
    groups: dict[tuple[Unit, str], list[AttackNumbers]] = {}
    for one in found:
        for unit in one.counts if one.attack == name else ():
            groups.setdefault((unit, one.task.goal), []).append(one)
    tables = [_unit_table(groups[key], *key, labels) for key in sorted(groups)]
    return "\n\n".join(tables) or NOT_MEASURED


def task_table(found: Sequence[AttackNumbers]) -> str:
    """What the short names of the models stand for, with the data of each."""
    tasks = {one.task: f"{one.correct} of {one.images}" for one in found}
    labels = _task_labels(list(tasks))
    rows = [
        (labels[task], f"`{task.model}`", f"`{task.data}`", tasks[task])
        for task in sorted(tasks, key=lambda task: labels[task])
    ]
    return markdown_table(("model", "`--model`", "`--data`", "images"), rows)


def _lines(part: StoreRuns, covered: Mapping[str, Coverage], unit: Unit) -> dict[str, AttackLine]:
    lines = attack_lines(part, covered, unit, data="", goal="")
    return {line.attack: line for line in lines}


def _numbers(
    attack: str,
    settings: tuple[str, ...],
    counts: tuple[Unit, ...],
    task: Task,
    covered: Coverage,
    lines: Mapping[Unit, AttackLine],
) -> AttackNumbers:
    runs = covered.runs[task]
    line = lines["pixels"]

    def over_seeds(measure: Any, unit: Unit) -> float:
        needed: Iterator[Numbers] = (run.needed(unit)[run.correct] for run in runs)
        return mean_and_deviation([float(measure(one)[0]) for one in needed])[0]

    return AttackNumbers(
        attack=attack,
        settings=settings,
        counts=counts,
        task=task,
        correct=int(runs[0].correct.sum()),
        images=len(runs[0].index),
        fooling_rate=line.fooling_rate,
        units={
            unit: UnitNumbers(
                mean=over_seeds(mean_needed, unit),
                mean_of_fooled=over_seeds(mean_over_fooled, unit),
                median=over_seeds(median_needed, unit),
                optimality=lines[unit].optimality,
            )
            for unit in _UNITS
        },
        forwards=line.forwards,
        backwards=line.backwards,
    )


def _counts(row: Mapping[str, Any]) -> tuple[Unit, ...]:
    """The units that an attack keeps few."""
    cls = ATTACKS.get(row["attack"])
    chosen = json.loads(row["settings"]).get("unit") or (cls().facts().unit if cls else None)
    return tuple(unit for unit in _UNITS if chosen in (unit, None))


def _task_labels(tasks: Sequence[Task]) -> dict[Task, str]:
    """The last part of a model's name; model and data where several share that part."""
    distinct = set(tasks)
    short = {task: re.split("[:/]", task.model)[-1] for task in distinct}
    users: dict[str, set[tuple[str, str]]] = {}
    for task, name in short.items():
        users.setdefault(name, set()).add((task.model, task.data))
    return {
        task: name if len(users[name]) == 1 else f"{task.model} on {task.data}"
        for task, name in short.items()
    }


def _unit_table(
    lines: Sequence[AttackNumbers], unit: Unit, goal: str, labels: Mapping[Task, str]
) -> str:
    """One table, sorted by model and settings; settings that all its lines share stand above it."""
    shared = [word for word in lines[0].settings if all(word in one.settings for one in lines)]
    own = {one.settings: [word for word in one.settings if word not in shared] for one in lines}
    lines = sorted(lines, key=lambda one: (labels[one.task], own[one.settings]))
    rows = [_cells(one, unit, labels[one.task], own[one.settings]) for one in lines]
    columns = ("model", "settings", "images", "fooling rate", "mean", "median", "optimality")
    table = [[*columns, "passes"], *rows]
    if len(own) == 1:
        table = [[row[0], *row[2:]] for row in table]
    caption = f"{unit.capitalize()}, {goal.replace('_', ' ')}; {_joined(shared)}:"
    return f"{caption}\n\n{markdown_table(table[0], table[1:])}"


def _cells(one: AttackNumbers, unit: Unit, label: str, settings: Sequence[str]) -> list[str]:
    numbers = one.units[unit]
    return [
        label,
        _joined(settings),
        f"{one.correct} of {one.images}",
        percent_text(one.fooling_rate),
        _mean(numbers),
        number_text(numbers.median, whole=True),
        _with_interval(numbers.optimality),
        _passes(one.forwards, one.backwards),
    ]


def _joined(words: Sequence[str]) -> str:
    return ", ".join(words) or "defaults"


def _mean(numbers: UnitNumbers) -> str:
    if math.isfinite(numbers.mean) or math.isnan(numbers.mean_of_fooled):
        return number_text(numbers.mean, whole=False)
    return f"∞ ({number_text(numbers.mean_of_fooled, whole=False)})"


def _with_interval(estimate: Estimate) -> str:
    low, high = decimal_text(estimate.low, 2), decimal_text(estimate.high, 2)
    interval = "" if math.isnan(estimate.low) else f" [{low}, {high}]"
    return f"{decimal_text(estimate.value, 2)}{interval}"


def _passes(forwards: float, backwards: float) -> str:
    return f"{number_text(forwards, whole=True)} + {number_text(backwards, whole=True)}"


def _nearest(cls: type[Attack], given: Mapping[str, Any]) -> list[str]:
    """The preset that differs least from these settings, unless it is none, and what differs."""
    name = cls.card.name
    specs = {"": {"name": name}}
    specs |= {f"preset {one}": {"name": name, "preset": one} for one in cls.presets}
    differ = {}
    for title, spec in specs.items():
        usual = json.loads(json.dumps(all_settings(build(spec))))
        changed = {key: value for key, value in given.items() if value != usual[key]}
        differ[title] = [f"`{key}={_plain(value)}`" for key, value in changed.items()]
    title = min(differ, key=lambda one: len(differ[one]))
    return [*([title] if title else []), *differ[title]]


def _plain_words(given: Mapping[str, Any]) -> list[str]:
    """All settings of an attack that is not in the table."""
    return [f"`{key}={_plain(value)}`" for key, value in given.items() if key != "name"]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
