"""How far a store is with the cells of a plan."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pinprick.bench.cell import Cell
from pinprick.bench.store import Store
from pinprick.errors import first_sentence


@dataclass
class GroupStatus:
    """Cells of one model, subset, attack and goal.

    Attributes:
        model: Name of the model.
        data: The subset.
        attack: Name of the attack.
        goal: The goal.
        cells: Number of cells.
        finished: Those that are in the store, also with an error.
        failed: Those of them with an error.
    """

    model: str
    data: str
    attack: str
    goal: str
    cells: int = 0
    finished: int = 0
    failed: int = 0


@dataclass
class ErrorStatus:
    """The first sentence of an error, and the number of finished cells and rows that hold it."""

    message: str
    cells: int = 0
    rows: int = 0


@dataclass(frozen=True)
class Status:
    """How far a store is with the cells of a plan.

    Attributes:
        groups: The cells by model, subset, attack and goal, in the order of the plan.
        damaged: Files of the store that hold no rows; a run writes those of the plan again.
        others: Finished cells in the store that the plan does not name.
        errors: Each error of these cells once, the most frequent first.
    """

    groups: list[GroupStatus] = field(default_factory=list)
    damaged: list[Path] = field(default_factory=list)
    others: int = 0
    errors: list[ErrorStatus] = field(default_factory=list)

    @property
    def cells(self) -> int:
        return sum(group.cells for group in self.groups)

    @property
    def finished(self) -> int:
        return sum(group.finished for group in self.groups)

    @property
    def failed(self) -> int:
        return sum(group.failed for group in self.groups)


def status_of(cells: Iterable[Cell], store: Store) -> Status:
    """Which of these cells the store has, which failed, and what else is in it."""
    groups: dict[tuple[str, str, str, str], GroupStatus] = {}
    errors: dict[str, ErrorStatus] = {}
    keys = set()
    damaged = store.damaged()  # which reads every row, so that ``has`` need not
    for cell in cells:
        name = (cell.model, cell.data, str(cell.attack["name"]), cell.goal)
        group = groups.setdefault(name, GroupStatus(*name))
        keys.add(cell.key)
        group.cells += 1
        if store.has(cell):
            group.finished += 1
            rows_with = Counter[str]()
            for message, rows in store.errors(cell).items():
                rows_with[first_sentence(message)] += rows
            group.failed += bool(rows_with)
            for message, rows in rows_with.items():
                error = errors.setdefault(message, ErrorStatus(message))
                error.cells += 1
                error.rows += rows
    others = set(store.keys()) - keys - {path.stem for path in damaged}
    frequent = sorted(errors.values(), key=lambda error: (-error.cells, error.message))
    return Status(list(groups.values()), damaged, len(others), frequent)
