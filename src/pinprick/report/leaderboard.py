"""The leaderboard of a benchmark store: attacks by optimality, models by robust accuracy."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pinprick.errors import BadInput, UnknownName, first_few
from pinprick.metrics.outcomes import Unit
from pinprick.report.attack_board import RESAMPLES, AttackLine, attack_lines
from pinprick.report.coverage import Coverage, cover
from pinprick.report.csv_text import csv_text
from pinprick.report.model_board import ModelLine, model_lines
from pinprick.report.store_runs import StoreRuns, choose_cells, image_sizes, read_runs
from pinprick.report.summary_tables import decimal_text, number_text, percent_text, with_interval
from pinprick.report.task_details import TaskDetails, task_details
from pinprick.report.text_table import TextTable, fill
from pinprick.report.transfer_table import Matrix, transfer_matrix, transfer_table

if TYPE_CHECKING:
    import polars as pl

KS = (10, 24, 50, 100)  # numbers of units of fooling rates and robust accuracies
_NONE = "-"  # the rank of a line that is not ranked


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """Both boards of a store.

    Attributes:
        unit: What is counted.
        attacks: One line per attack.
        models: One line per model, data and goal.
        tasks, images: How many tasks, which are models with data and goal, and images there are.
        stated: The attacks whose worst case the models are under.
        rank_at: The number of units by which models are ranked.
        trapezoid: Whether tables show the optimality of AttackBench's code as well.
        details: Every number on each task.
        transfers: The transfer matrix.
    """

    unit: Unit
    attacks: tuple[AttackLine, ...]
    models: tuple[ModelLine, ...]
    tasks: int
    images: int
    stated: tuple[str, ...]
    rank_at: int
    trapezoid: bool = False
    details: tuple[TaskDetails, ...] = ()
    transfers: Matrix = field(default_factory=dict)

    def text(self) -> str:
        return self._blocks(TextTable.text, fill)

    def markdown(self) -> str:
        return self._blocks(TextTable.markdown, str)

    def latex(self) -> str:
        """One ``tabular`` per table, which needs the package booktabs; the rest is comments."""
        return self._blocks(TextTable.latex, "% {}".format)

    def csv(self) -> str:
        """The board of attacks with every number in full."""
        return csv_text(self.attacks)

    def models_csv(self) -> str:
        """The board of models with every number in full."""
        return csv_text(self.models)

    def __str__(self) -> str:
        return self.text()

    def attack_table(self) -> TextTable:
        extra = ("trapezoid",) if self.trapezoid else ()
        head = ("rank", "attack", "optimality", *extra, "fooling rate", "of all images")
        rows = [
            (
                str(line.rank or _NONE),
                line.attack,
                with_interval(line.optimality, digits=3),
                *((decimal_text(line.trapezoid, 3),) if self.trapezoid else ()),
                percent_text(line.fooling_rate),
                percent_text(line.fooling_rate_of_all),
                number_text(line.median, whole=True),
                f"{number_text(line.forwards, whole=True)} + "
                f"{number_text(line.backwards, whole=True)}",
                _NONE if math.isnan(line.seconds) else f"{line.seconds:.3g}",
                _coverage(line),
            )
            for line in self.attacks
        ]
        head = (*head, f"median {self.unit}", "passes", "seconds", "coverage")
        return TextTable(f"Attacks by optimality, in {self.unit}", head, rows)

    def model_tables(self) -> list[TextTable]:
        """One table per data and goal, since models are compared on the same images."""
        groups = dict.fromkeys((line.data, line.goal) for line in self.models)
        return [self._model_table(data, goal) for data, goal in groups]

    def _model_table(self, data: str, goal: str) -> TextTable:
        lines = [line for line in self.models if (line.data, line.goal) == (data, goal)]
        names = [line.model for line in lines]
        rows = [
            (
                str(line.rank or _NONE),
                line.model
                if names.count(line.model) == 1
                else f"{line.model} ({line.weights[:8]})",
                percent_text(line.clean_accuracy),
                *(percent_text(robust) for robust in line.robust_accuracy.values()),
                f"{line.images:,} of {line.expected:,}",
            )
            for line in lines
        ]
        ks = [f"at {k}" for k in lines[0].robust_accuracy]
        caption = f"Models by robust accuracy at {self.rank_at} {self.unit}: {data}, {goal}"
        return TextTable(caption, ("rank", "model", "clean", *ks, "images"), rows)

    def explain(self) -> str:
        """What the tables are over, and what ranks, brackets and ± mean."""
        several = f" of {self.tasks} models and goals" if self.tasks > 1 else ""
        sentences = [
            f"An attack is ranked if it has all {self.images:,} images{several}.",
            "Optimality is 1 for the fewest units of all attacks on every image, and 0 for none "
            "fooled.",
            "Brackets are 95 % intervals: bootstrap over images "
            f"({RESAMPLES:,} resamples) for optimality, Wilson for robust accuracy.",
            "Lines whose intervals overlap share a rank.",
            f"Models are under the worst case of {_names(self.stated)}.",
        ]
        if None in [*(line.rank for line in self.attacks), *(line.rank for line in self.models)]:
            sentences.append(
                "A line with rank - is incomplete or undefined: its numbers are over the images "
                "that it has, and it is not ranked."
            )
        seeds = max(line.seeds for line in self.attacks)
        if seeds > 1:
            sentences.append(
                f"With several seeds, up to {seeds}, numbers are means over seeds and ± is the "
                "standard deviation."
            )
        return " ".join(sentences)

    def _blocks(self, table: Callable[[TextTable], str], sentence: Callable[[str], str]) -> str:
        tables = [self.attack_table(), *self.model_tables()]
        tables += [table for one in self.details for table in one.tables()]
        tables += [transfer_table(self.transfers)] if self.transfers else []
        return "\n\n".join([*map(table, tables), sentence(self.explain())])


def leaderboard(
    rows: "pl.LazyFrame",
    *,
    unit: Unit = "pixels",
    ks: Sequence[int] = KS,
    rank_at: int = KS[0],
    attacks: Sequence[str] | None = None,
    where: Mapping[str, Sequence[str]] | None = None,
    best_so_far: bool = False,
    trapezoid: bool = False,
    details: bool = False,
    baseline: str | None = None,
    transfer: bool = False,
) -> Leaderboard:
    """Both boards from the rows of a store.

    Args:
        rows: The rows of ``Store.scan()``.
        unit: Whether "pixels" or "elements" are counted.
        ks: Numbers of units at which robust accuracy is shown.
        rank_at: The number of units by which models are ranked.
        attacks: The attacks of both boards; by default all, and for models all that are ranked.
        where: Values of columns of cells, as in ``{"device": ["cpu"]}``; others are left out.
        best_so_far: Whether the best per image counts images that an attack saw and did not return.
        trapezoid: Whether tables show the optimality of AttackBench's code as well.
        details: Whether to add tables of every model with all numbers and paired tests.
        baseline: The attack against which the details have speed-ups.
        transfer: Whether to add the transfer matrix.
    """
    cells = choose_cells(rows, where, attacks)
    store = read_runs(rows, cells, unit, best_so_far=best_so_far)
    if not store.runs:
        raise BadInput("every row that was chosen has an error; see pinprick bench status")
    covered = {name: cover(store, name) for name in store.attacks}
    lines = attack_lines(store, covered, unit)
    stated = _stated(covered, all_of_them=attacks is not None)
    every_k = sorted({*ks, rank_at})
    return Leaderboard(
        unit=unit,
        attacks=tuple(lines),
        models=tuple(model_lines(store, stated, unit, every_k, rank_at)),
        tasks=len(store.images),
        images=sum(map(len, store.images.values())),
        stated=tuple(stated),
        rank_at=rank_at,
        trapezoid=trapezoid,
        details=_details(rows, cells, store, covered, unit, every_k, baseline) if details else (),
        transfers=transfer_matrix(rows, cells) if transfer else {},
    )


def _details(
    rows: "pl.LazyFrame",
    cells: "pl.DataFrame",
    store: StoreRuns,
    covered: Mapping[str, Coverage],
    unit: Unit,
    ks: Sequence[int],
    baseline: str | None,
) -> tuple[TaskDetails, ...]:
    if baseline is not None and baseline not in store.attacks:
        raise UnknownName("attack in the store", baseline, store.attacks)
    sizes = image_sizes(rows, cells)
    found = (
        task_details(store, covered, task, unit, ks, size=sizes[task], baseline=baseline)
        for task in store.images
    )
    return tuple(one for one in found if one is not None)


def _stated(covered: Mapping[str, Coverage], *, all_of_them: bool) -> dict[str, Coverage]:
    """The attacks whose worst case counts: the complete ones, unless the user stated them."""
    complete = {name: one for name, one in covered.items() if one.complete}
    return dict(covered) if all_of_them or not complete else complete


def _coverage(line: AttackLine) -> str:
    if line.done == line.expected:
        return "all"
    errors = f", {line.errors:,} errors" if line.errors else ""
    return f"{line.done:,} of {line.expected:,}{errors}"


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} attacks ({first_few(names, 8)})"
