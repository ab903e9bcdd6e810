"""The answer in five lines on the page of the leaderboard, from its boards."""

import math
from collections.abc import Mapping
from statistics import fmean

from pinprick.metrics.unit import Unit
from pinprick.report.docs_leaderboard import Boards, by_attack, mean_optimality
from pinprick.report.docs_measured import markdown_list
from pinprick.report.leaderboard import KS

_NEAR = 0.05  # an attack whose optimality is at most so much lower is near the best


def answer(by_unit: Mapping[Unit, Boards], models: Boards) -> str:
    """The answer in five lines; ``models`` are boards in pixels with all attacks."""
    lines = [_best_attacks(unit, found) for unit, found in by_unit.items()]
    elements = by_unit["elements"]
    lines.append(_cheapest(elements))
    lines.append(_first_everywhere(elements))
    lines.append(_models(models))
    return markdown_list(lines, numbered=True)


def _best_attacks(unit: Unit, found: Boards) -> str:
    lines = by_attack(found)
    means = {name: mean_optimality(own, found) for name, own in lines.items()}
    known = [(name, mean) for name, mean in means.items() if not math.isnan(mean)]
    if not known:
        return f"No attack is complete on all datasets in {unit}."
    (best, highest), *others = known
    more = " and ".join(f"`{name}` ({mean:.3f})" for name, mean in others[:2])
    after = f" Next: {more}." if more else ""
    return (
        f"**In {unit}**, `{best}` has the highest mean optimality, {highest:.3f}, "
        f"of {len(known)} attacks that are complete on all datasets.{after}"
    )


def _cheapest(found: Boards) -> str:
    lines = by_attack(found)
    means = {name: mean_optimality(own, found) for name, own in lines.items()}
    known = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    if not known:
        return "No attack is complete on all datasets."
    near = [name for name, mean in known.items() if mean >= max(known.values()) - _NEAR]

    def passes(name: str) -> float:
        return fmean(line.forwards + line.backwards for line in lines[name].values())

    least = min(near, key=passes)
    return (
        f"**The cheapest** attack within {_NEAR} of the best mean in elements is `{least}`, "
        f"with {passes(least):.0f} passes per image."
    )


def _first_everywhere(found: Boards) -> str:
    first = [
        name
        for name, own in by_attack(found).items()
        if all(data in own and own[data].rank == 1 for data in found)
    ]
    if not first:
        return "**No attack** has rank 1 in elements on every dataset."
    names = ", ".join(f"`{name}`" for name in first)
    return f"**Rank 1** in elements on every dataset: {names}."


def _models(found: Boards) -> str:
    best = []
    for data, group in found.items():
        line = next((line for line in group.models if line.rank == 1), None)
        if line is not None:
            robust = 100 * line.robust_accuracy[KS[0]].value
            best.append(f"`{line.model}` {robust:.1f} % ({data})")
    return f"**Highest robust accuracy** at {KS[0]} pixels: {', '.join(best)}."
