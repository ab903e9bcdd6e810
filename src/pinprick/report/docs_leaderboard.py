"""Tables and the figure of the page of the leaderboard, from a benchmark store.

There is one board per dataset and unit. A board in elements has the attacks that count elements and
those that can count one unit only; a board in pixels likewise. In grey images both are the same, so
that an attack was run once there.
"""

import json
import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from pinprick.metrics.estimate import Estimate
from pinprick.metrics.unit import Unit
from pinprick.report.attack_board import AttackLine
from pinprick.report.board_group import Group
from pinprick.report.docs_measured import markdown_table
from pinprick.report.leaderboard import KS, leaderboard
from pinprick.report.series_looks import COLOURS, MARKERS
from pinprick.report.summary_tables import decimal_text, number_text, percent_text, with_interval

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

UNITS: tuple[Unit, ...] = ("elements", "pixels")
Boards = Mapping[str, Group]  # by the name of the dataset
# AttackBench's optimality and fooling rate at 2000 passes, CIFAR-10, WideResNet-28-10 "Standard";
# Cinà, Rony et al., AAAI 2025. Of FMN, the version of adversarial-library.
PUBLISHED = {
    "sigma_zero": (0.972, 1.0),
    "fmn": (0.876, 1.0),
    "vfga": (0.669, 0.987),
    "pgd0": (0.510, 1.0),
    "pdpgd": (0.284, 1.0),
}


def boards(
    rows: "pl.LazyFrame", cells: "pl.DataFrame", unit: Unit, *, all_attacks: bool = False
) -> dict[str, Group]:
    """The board of each dataset.

    Args:
        rows: The rows of a store.
        cells: Its cells; ``Store.rows_and_cells`` gives both.
        unit: What is counted.
        all_attacks: Whether attacks that count the other unit are on the board, too; the worst case
            for a model is over all of them.
    """
    found = {}
    for data in sorted(set(cells["data"])):
        mine = cells.filter(cells["data"] == data)
        mine = mine if all_attacks else _in_unit(mine, unit)
        board = leaderboard(rows, mine, unit=unit, trapezoid=True)
        found[dataset_name(data)] = board.groups[0]
    return found


def dataset_name(data: str) -> str:
    """The set of a subset: "cifar10" for "cifar10/test[0:200]", "nips2017" for its list."""
    name = data.partition("[")[0].removesuffix("/test")
    return name.removeprefix("csv:").split("/")[-2] if name.startswith("csv:") else name


def attack_table(found: Boards) -> str:
    """Rank and optimality of every attack on every dataset, from the best in the mean."""
    lines = by_attack(found)
    rows = [
        [
            f"`{attack}`",
            *(_place(own.get(data)) for data in found),
            decimal_text(mean_optimality(own, found), 3),
            _passes(list(own.values())),
        ]
        for attack, own in lines.items()
    ]
    return markdown_table(["attack", *found, "mean", "passes"], rows)


def model_table(found: Boards) -> str:
    """Robust accuracy in % of every model under the worst case of the ranked attacks."""
    rows = [
        [
            data,
            str(line.rank or "-"),
            f"`{line.model}`",
            _in_percent(line.clean_accuracy),
            *(_in_percent(robust) for robust in line.robust_accuracy.values()),
            str(line.images),
            str(len(group.stated)),
        ]
        for data, group in found.items()
        for line in group.models
    ]
    ks = [f"at {k}" for k in KS]
    return markdown_table(["data", "rank", "model", "clean", *ks, "images", "attacks"], rows)


def _in_percent(one: Estimate) -> str:
    return f"{100 * one.value:.1f} [{100 * one.low:.0f}, {100 * one.high:.0f}]"


def attackbench_table(found: Boards) -> str:
    """Our optimality in both forms beside the values that AttackBench published."""
    (group,) = found.values()
    rows = []
    for line in group.attacks:
        published = PUBLISHED.get(line.attack.partition(" ")[0])
        rows.append(
            [
                str(line.rank or "-"),
                f"`{line.attack}`",
                with_interval(line.optimality, digits=3),
                decimal_text(line.trapezoid, 3),
                percent_text(line.fooling_rate),
                "-" if published is None else decimal_text(published[0], 3),
                "-" if published is None else f"{100 * published[1]:.1f} %",
                _passes([line]),
            ]
        )
    head = ["rank", "attack", "optimality", "trapezoid", "fooling rate"]
    theirs = ["their optimality", "their fooling rate"]
    return markdown_table([*head, *theirs, "passes"], rows)


def leaderboard_figure(by_unit: Mapping[Unit, Boards]) -> "Figure":
    """Optimality of every attack: one panel per unit, one marker per dataset."""
    from matplotlib.figure import Figure

    names = {unit: list(by_attack(found)) for unit, found in by_unit.items()}
    longest = max(map(len, names.values()))
    size = (4.2 * len(by_unit), 0.9 + 0.22 * longest)
    figure = Figure(figsize=size, dpi=130, layout="constrained")
    panels = figure.subplots(1, len(by_unit), squeeze=False)[0]
    for axes, (unit, found) in zip(panels, by_unit.items(), strict=True):
        for number, (data, group) in enumerate(found.items()):
            lines = {line.attack: line for line in group.attacks if line.rank is not None}
            at = [names[unit].index(attack) for attack in lines]
            axes.errorbar(
                [line.optimality.value for line in lines.values()],
                at,
                xerr=list(zip(*map(_reach, lines.values()), strict=True)) or None,
                fmt=MARKERS[number % len(MARKERS)],
                color=COLOURS[number % len(COLOURS)],
                markersize=4.5,
                alpha=0.8,
                elinewidth=0.8,
                label=data,
            )
        axes.set_yticks(range(len(names[unit])), names[unit], fontsize=8, parse_math=False)
        axes.set_ylim(longest - 0.5, -0.5)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel(f"optimality in {unit}")
        axes.grid(alpha=0.3, linewidth=0.5)
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=len(handles[1]), fontsize=8)
    return figure


def mean_optimality(own: Mapping[str, AttackLine], found: Boards) -> float:
    """Over the datasets; NaN unless the attack is ranked on all of them."""
    if any(data not in own or own[data].rank is None for data in found):
        return math.nan
    return fmean(line.optimality.value for line in own.values())


def _in_unit(cells: "pl.DataFrame", unit: Unit) -> "pl.DataFrame":
    """Without attacks that count the other unit, where they were run in this one, too."""
    import polars as pl

    units = [json.loads(settings).get("unit") for settings in cells["settings"]]
    wanted = {None, unit} if unit in units else {None, *UNITS}
    return cells.filter(pl.Series([one in wanted for one in units]))


def by_attack(found: Boards) -> dict[str, dict[str, AttackLine]]:
    """By attack and dataset, from the best mean; those that are not ranked everywhere last."""
    lines: dict[str, dict[str, AttackLine]] = {}
    for data, group in found.items():
        for line in group.attacks:
            lines.setdefault(line.attack, {})[data] = line

    def order(name: str) -> tuple[bool, float, str]:
        mean = mean_optimality(lines[name], found)
        return math.isnan(mean), 0.0 if math.isnan(mean) else -mean, name

    return {name: lines[name] for name in sorted(lines, key=order)}


def _place(line: AttackLine | None) -> str:
    if line is None:
        return "-"
    return f"{line.rank or '-'}: {with_interval(line.optimality, digits=2)}"


def _passes(lines: Sequence[AttackLine]) -> str:
    forwards, backwards = (
        fmean(getattr(line, name) for line in lines) for name in ("forwards", "backwards")
    )
    return f"{number_text(forwards, whole=True)} + {number_text(backwards, whole=True)}"


def _reach(line: AttackLine) -> tuple[float, float]:
    """How far the interval reaches to both sides."""
    one = line.optimality
    return max(0.0, one.value - one.low), max(0.0, one.high - one.value)
