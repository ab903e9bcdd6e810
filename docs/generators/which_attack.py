"""The measured tables of docs/how_to/which_attack.md, and the eight attacks of README.

Both come from the store results/leaderboard, the attacks towards a target from results/wifgsm.
"""

import json
import math
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import fmean

from generators.leaderboard import LEADERBOARD, by_unit, earlier_revisions
from pinprick.attacks import ATTACKS
from pinprick.bench.store import Store
from pinprick.metrics.unit import Unit
from pinprick.report.attack_board import AttackLine
from pinprick.report.docs_attack_numbers import NOT_MEASURED, attack_numbers
from pinprick.report.docs_leaderboard import UNITS, mean_optimality
from pinprick.report.docs_measured import markdown_table, wrapped
from pinprick.report.summary_tables import decimal_text, number_text

WITH_TARGETS = Path(__file__).parents[2] / "results" / "wifgsm" / "store"
EIGHT = {
    "pinprick": ("pinprick effort=balanced", "the fewest pixels or elements; start here"),
    "auto": ("auto", "a robust accuracy to publish: the worst case of several attacks"),
    "sigma_zero": ("sigma_zero", "a baseline that recent papers compare with"),
    "wifgsm": ("wifgsm", "few passes; sparse attacks that can be explained"),
    "sparse_pgd": ("sparse_pgd", "a fixed number of pixels"),
    "sparse_rs": ("sparse_rs", "a model that gives scores alone"),
    "sparse_evo": ("sparse_evo", "a model that gives labels alone"),
    "pgd": ("", "small changes of every pixel (l∞)"),
}
USABLE = {  # by what a model gives, what an attack may need
    "gradients": ("network", "gradients", "scores", "labels"),
    "scores": ("scores", "labels"),
    "labels": ("labels",),
}
LIMITS = {"gradients": (200, 1000, 2000), "scores": (1000, 2000), "labels": (1000, 2000)}
BUDGETS = {"cifar10": (3, 5, 10), "nips2017": (25, 50, 100)}
SETS = {"mnist": "MNIST", "fashion_mnist": "Fashion", "cifar10": "CIFAR-10", "nips2017": "photos"}
AT_A_BUDGET = ("sparse_pgd", "pgd0", "sparse_rs", "brusle", "sa_moo", "onepixel", "pinprick")
Lines = dict[str, dict[str, AttackLine]]  # by attack and set


def eight_attacks() -> str:
    """What each is for, what it needs, and its figures in elements."""
    lines = _lines("elements")
    rows = []
    for name, (label, use) in EIGHT.items():
        access = ATTACKS[name].card.access
        own = lines.get(label, {})
        figures = _figures(own, ("cifar10", "nips2017")) if own else ["-"] * 4
        rows.append([f"[`{name}`](docs/methods/{name}.md)", use, access, *figures])
    columns = ["attack", "use it for", "needs", "optimality", "CIFAR-10", "photos", "passes"]
    return "\n\n".join((markdown_table(columns, rows), *map(wrapped, earlier_revisions())))


def best_by_passes() -> str:
    """The attack of the highest mean optimality per access, unit and limit of passes."""
    rows = [
        [access, str(limit), *(_best(access, unit, limit) for unit in UNITS)]
        for access, limits in LIMITS.items()
        for limit in limits
    ]
    columns = ["the model gives", "passes at most", *(f"in {unit}" for unit in UNITS)]
    return markdown_table(columns, rows)


def by_access(accesses: Iterable[str], most: int) -> str:
    """The first attacks by optimality in elements, with the medians of both units."""
    elements, pixels = _lines("elements"), _lines("pixels")
    rows = []
    for label, own in elements.items():
        if _access(label) in accesses and not math.isnan(_optimality(own)):
            other = pixels.get(label, {})
            of_pixels = decimal_text(_optimality(other), 2) if other else "-"
            pairs = [f"{_median(own.get(data))}, {_median(other.get(data))}" for data in SETS]
            optimality = f"{decimal_text(_optimality(own), 2)}, {of_pixels}"
            fooled = fmean(line.fooling_rate.value for line in own.values())
            rows.append([f"`{label}`", optimality, f"{100 * fooled:.0f} %", *pairs, _passes(own)])
    columns = ["attack", "optimality", "fooled", *SETS.values(), "passes"]
    return markdown_table(columns, rows[:most])


def at_a_budget(data: str) -> str:
    """Share of the correct images of a set that each attack fools with at most k pixels."""
    import polars as pl

    rows, cells = Store(LEADERBOARD).rows_and_cells()
    settings = [json.loads(text) for text in cells["settings"]]
    wanted = [
        one.get("unit") in (None, "pixels") and one.get("effort") in (None, "balanced")
        for one in settings
    ]
    cells = cells.filter(pl.Series(wanted) & cells["data"].str.contains(data))
    joined = rows.join(cells.lazy().select("cell", "attack"), on="cell").filter("correct")
    shares = [
        (pl.col("success") & (pl.col("pixels") <= k)).mean().alias(str(k)) for k in BUDGETS[data]
    ]
    passes = (pl.col("forwards") + pl.col("backwards")).mean().alias("passes")
    found = joined.group_by("attack").agg(pl.len().alias("images"), *shares, passes).collect()
    by_name = {row["attack"]: row for row in found.iter_rows(named=True)}
    middle = str(BUDGETS[data][1])
    chosen = sorted((by_name[name] for name in AT_A_BUDGET), key=lambda row: -row[middle])
    table = [
        [
            f"`{row['attack']}`",
            ATTACKS[row["attack"]].card.access,
            *(f"{100 * row[str(k)]:.0f} %" for k in BUDGETS[data]),
            f"{row['passes']:.0f}",
            str(row["images"]),
        ]
        for row in chosen
    ]
    budgets = [f"{k} pixels" for k in BUDGETS[data]]
    return markdown_table(["attack", "needs", *budgets, "passes", "images"], table)


def with_targets() -> str:
    """WI-FGSM and σ-zero towards the least likely class."""
    rows, cells = Store(WITH_TARGETS).rows_and_cells()
    cells = cells.filter(cells["goal"] == "least_likely")
    found = [
        one
        for one in attack_numbers(rows, cells)
        if one.attack in ("wifgsm", "sigma_zero") and one.settings in ((), ("preset imagenet",))
    ]
    table = [
        [
            f"`{one.task.model.removeprefix('file:models/')}`",
            f"`{one.attack}`",
            ", ".join(one.settings) or "defaults",
            f"{100 * one.fooling_rate.value:.0f} %",
            number_text(one.units["elements"].median, whole=True),
            number_text(one.units["elements"].mean, whole=False),
            f"{one.forwards:.0f} + {one.backwards:.0f}",
            str(one.correct),
        ]
        for one in found
    ]
    columns = ["model", "attack", "settings", "fooled", "median elements", "mean", "passes"]
    return markdown_table([*columns, "images"], table)


def _lines(unit: Unit) -> Lines:
    """The lines of every attack, from the best mean over the sets."""
    found: Lines = {}
    for data, group in by_unit()[unit].items():
        for line in group.attacks:
            found.setdefault(line.attack, {})[data] = line
    order = {
        label: -math.inf if math.isnan(value) else value
        for label, value in ((label, _optimality(own)) for label, own in found.items())
    }
    return {label: found[label] for label in sorted(found, key=lambda label: -order[label])}


def _optimality(own: dict[str, AttackLine]) -> float:
    return mean_optimality(own, by_unit()["elements"])


def _access(label: str) -> str:
    return ATTACKS[label.partition(" ")[0]].card.access


def _best(access: str, unit: Unit, limit: int) -> str:
    for label, own in _lines(unit).items():
        passes = max(line.forwards + line.backwards for line in own.values())
        usable = _access(label) in USABLE[access]
        if usable and passes <= limit and not math.isnan(_optimality(own)):
            return f"`{label}`, {decimal_text(_optimality(own), 2)}"
    return "none"


def _figures(own: dict[str, AttackLine], sets: Iterable[str]) -> list[str]:
    medians = [_median(own.get(data)) for data in sets]
    return [decimal_text(_optimality(own), 2), *medians, _passes(own)]


def _median(line: AttackLine | None) -> str:
    return "-" if line is None else number_text(line.median, whole=True)


def _passes(own: dict[str, AttackLine]) -> str:
    """Forward + backward passes, the mean over the sets."""
    forwards, backwards = (
        fmean(getattr(line, name) for line in own.values()) for name in ("forwards", "backwards")
    )
    return f"{forwards:.0f} + {backwards:.0f}"


def _if_there(store: Path, block: Callable[[], str]) -> str:
    return block() if store.is_dir() else NOT_MEASURED


_BLOCKS: dict[str, Callable[[], str]] = {
    "by passes": best_by_passes,
    "gradients": partial(by_access, ("network", "gradients"), 8),
    "black box": partial(by_access, ("scores", "labels"), 8),
    "budget, CIFAR-10": partial(at_a_budget, "cifar10"),
    "budget, photographs": partial(at_a_budget, "nips2017"),
}
PAGES = {
    "docs/how_to/which_attack.md": {
        **{name: partial(_if_there, LEADERBOARD, block) for name, block in _BLOCKS.items()},
        "targets": partial(_if_there, WITH_TARGETS, with_targets),
    },
    "README.md": {"eight attacks": partial(_if_there, LEADERBOARD, eight_attacks)},
}
