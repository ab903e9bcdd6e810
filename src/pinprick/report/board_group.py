"""The boards of some data and one kind of goal, as tables."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pinprick.errors import first_few
from pinprick.metrics.unit import Unit
from pinprick.report.attack_board import AttackLine
from pinprick.report.model_board import ModelLine
from pinprick.report.summary_tables import decimal_text, number_text, percent_text, with_interval
from pinprick.report.task_details import TaskDetails
from pinprick.report.text_table import TextTable

_NONE = "-"  # the rank of a line that is not ranked


@dataclass(frozen=True, kw_only=True)
class Group:
    """Both boards of the models on some data with one kind of goal.

    Attributes:
        data, goal: What the models are attacked on, and the goal.
        tasks: Number of tasks: models, and with random targets their seeds.
        images: Number of images of all tasks.
        attacks: One line per attack.
        models: One line per task.
        stated: The attacks whose worst case the models are under.
        details: Every number on each task.
    """

    data: str
    goal: str
    tasks: int
    images: int
    attacks: tuple[AttackLine, ...]
    models: tuple[ModelLine, ...]
    stated: tuple[str, ...]
    details: tuple[TaskDetails, ...] = ()

    def attack_table(self, unit: Unit, *, trapezoid: bool) -> TextTable:
        """The board of attacks, by optimality."""
        extra = ("trapezoid",) if trapezoid else ()
        head = ("rank", "attack", "optimality", *extra, "fooling rate", "of all images")
        rows = [
            (
                str(line.rank or _NONE),
                line.attack,
                with_interval(line.optimality, digits=3),
                *((decimal_text(line.trapezoid, 3),) if trapezoid else ()),
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
        head = (*head, f"median {unit}", "passes", "seconds", "coverage")
        models = len({(line.model, line.weights) for line in self.models})
        caption = (
            f"Attacks by optimality in {unit}: {self.data}, {_goal(self.goal)}, "
            f"{models} model{'s' if models > 1 else ''}"
        )
        return TextTable(caption, head, rows)

    def model_table(self, unit: Unit, rank_at: int) -> TextTable:
        """The board of models, by robust accuracy at ``rank_at`` units."""
        weights: dict[str, set[str]] = {}
        for line in self.models:
            weights.setdefault(line.model, set()).add(line.weights)
        seeded = len({line.goal for line in self.models}) > 1
        rows = [
            (
                str(line.rank or _NONE),
                line.model
                if len(weights[line.model]) == 1
                else f"{line.model} ({line.weights[:8]})",
                *((_goal(line.goal),) if seeded else ()),
                percent_text(line.clean_accuracy),
                *(percent_text(robust) for robust in line.robust_accuracy.values()),
                f"{line.images:,} of {line.expected:,}",
            )
            for line in self.models
        ]
        ks = [f"at {k}" for k in self.models[0].robust_accuracy]
        caption = (
            f"Models by robust accuracy at {rank_at} {unit}: {self.data}, "
            f"{_goal(self.goal)}, worst case of {_names(self.stated)}"
        )
        goals = ("goal",) if seeded else ()
        return TextTable(caption, ("rank", "model", *goals, "clean", *ks, "images"), rows)


def _goal(goal: str) -> str:
    return goal.replace("_", " ")


def _coverage(line: AttackLine) -> str:
    if line.done == line.expected:
        return "all"
    errors = f", {line.errors:,} errors" if line.errors else ""
    return f"{line.done:,} of {line.expected:,}{errors}"


def _names(names: Sequence[str]) -> str:
    return first_few(names, 4)
