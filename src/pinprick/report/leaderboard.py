"""The leaderboard of a benchmark store: attacks by optimality, models by robust accuracy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pinprick.errors import BadInput, UnknownName
from pinprick.metrics.unit import Unit
from pinprick.report.attack_board import RESAMPLES, AttackLine, attack_lines
from pinprick.report.board_group import Group
from pinprick.report.coverage import Coverage, cover
from pinprick.report.csv_text import csv_text
from pinprick.report.model_board import ModelLine, model_lines
from pinprick.report.read_runs import choose_cells, image_sizes, read_runs
from pinprick.report.task_details import task_details
from pinprick.report.text_table import TextTable, fill
from pinprick.report.transfer_table import (
    Matrix,
    transfer_lines,
    transfer_matrix,
    transfer_table,
)

if TYPE_CHECKING:
    import polars as pl

KS = (10, 24, 50, 100)  # numbers of units of fooling rates and robust accuracies


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """The boards of a store.

    Attributes:
        unit: What is counted.
        groups: The boards by data and goal.
        rank_at: The number of units by which models are ranked.
        trapezoid: Whether tables show the optimality of AttackBench's code as well.
        transfers: The transfer matrix.
    """

    unit: Unit
    groups: tuple[Group, ...]
    rank_at: int
    trapezoid: bool = False
    transfers: Matrix = field(default_factory=dict)

    def text(self) -> str:
        return self._blocks(TextTable.text, fill)

    def markdown(self) -> str:
        return self._blocks(TextTable.markdown, str)

    def latex(self) -> str:
        """One ``tabular`` per table, which needs the package booktabs; the rest is comments."""
        return self._blocks(TextTable.latex, "% {}".format)

    def csv(self) -> str:
        """The boards of attacks with every number in full."""
        return csv_text([vars(line) for line in self.attacks])

    def models_csv(self) -> str:
        """The boards of models with every number in full."""
        return csv_text([vars(line) for line in self.models])

    def details_csv(self) -> str:
        """The details of all tasks with every number in full; ``BadInput`` if there are none."""
        tasks = [one for group in self.groups for one in group.details]
        if not tasks:
            raise BadInput("no image was attacked by all attacks on a model: there are no details")
        return csv_text([line for one in tasks for line in one.csv_lines()])

    def transfer_csv(self) -> str:
        """The transfer matrix, one line per source and victim; ``BadInput`` if there is none."""
        if not self.transfers:
            raise BadInput("no victims judged the adversarial images: there is no transfer matrix")
        return csv_text(transfer_lines(self.transfers))

    def __str__(self) -> str:
        return self.text()

    @property
    def attacks(self) -> list[AttackLine]:
        """The lines of all groups."""
        return [line for group in self.groups for line in group.attacks]

    @property
    def models(self) -> list[ModelLine]:
        """The lines of all groups."""
        return [line for group in self.groups for line in group.models]

    def tables(self) -> list[TextTable]:
        tables = []
        for group in self.groups:
            tables.append(group.attack_table(self.unit, trapezoid=self.trapezoid))
            tables.append(group.model_table(self.unit, self.rank_at))
            tables += [table for one in group.details for table in one.tables()]
        return [*tables, *([transfer_table(self.transfers)] if self.transfers else [])]

    def explain(self) -> str:
        """What the tables are over, and what ranks, brackets and ± mean."""
        sentences = [
            "Optimality is 1 for an attack that needs the fewest units of all attacks on every "
            "image.",
            "Fooling rates are over correctly classified images, and over all images.",
            "Brackets are 95 % intervals: bootstrap over images "
            f"({RESAMPLES:,} resamples) for optimality, Wilson for robust accuracy.",
            "A rank is one more than the number of lines whose interval lies wholly above.",
        ]
        if None in [*(line.rank for line in self.attacks), *(line.rank for line in self.models)]:
            sentences.append(
                "A line with rank - lacks images or has no optimality: its numbers are over the "
                "images that it has, and it is not ranked."
            )
        seeds = max(line.seeds for line in self.attacks)
        if seeds > 1:
            sentences.append(
                f"With several seeds, up to {seeds}, numbers are means over seeds and ± is the "
                "standard deviation."
            )
        return " ".join(sentences)

    def _blocks(self, table: Callable[[TextTable], str], sentence: Callable[[str], str]) -> str:
        return "\n\n".join([*map(table, self.tables()), sentence(self.explain())])


def leaderboard(
    rows: "pl.LazyFrame",
    cells: "pl.DataFrame",
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
        rows: The rows of a store.
        cells: Its cells; ``Store.rows_and_cells`` gives both.
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
    cells = choose_cells(cells, where, attacks)
    store = read_runs(rows, cells, unit, best_so_far=best_so_far)
    if not store.runs:
        raise BadInput("every row that was chosen has an error; see pinprick bench status")
    if baseline is not None and baseline not in store.attacks:
        raise UnknownName("attack in the store", baseline, store.attacks)
    every_k = sorted({*ks, rank_at})
    sizes = image_sizes(rows, cells) if details else {}
    kinds = dict.fromkeys((task.data, _kind(task.goal)) for task in store.tasks)
    groups = []
    for data, goal in kinds:
        tasks = [task for task in store.tasks if (task.data, _kind(task.goal)) == (data, goal)]
        part = store.part(tasks)
        covered = {name: cover(part, name) for name in part.attacks}
        stated = _stated(covered, all_of_them=attacks is not None)
        found = (
            task_details(part, covered, task, unit, every_k, size=sizes[task], baseline=baseline)
            for task in (tasks if details else ())
        )
        groups.append(
            Group(
                data=data,
                goal=goal,
                tasks=len(tasks),
                images=sum(map(len, part.images.values())),
                attacks=tuple(attack_lines(part, covered, unit, data=data, goal=goal)),
                models=tuple(model_lines(part, stated, unit, every_k, rank_at)),
                stated=tuple(stated),
                details=tuple(one for one in found if one is not None),
            )
        )
    return Leaderboard(
        unit=unit,
        groups=tuple(groups),
        rank_at=rank_at,
        trapezoid=trapezoid,
        transfers=transfer_matrix(rows, cells) if transfer else {},
    )


def _kind(goal: str) -> str:
    """The goal without the seed of random targets."""
    return goal.partition(",")[0]


def _stated(covered: Mapping[str, Coverage], *, all_of_them: bool) -> dict[str, Coverage]:
    """The attacks whose worst case counts: the complete ones, unless the user stated them."""
    complete = {name: one for name, one in covered.items() if one.complete}
    return dict(covered) if all_of_them or not complete else complete
