"""Numbers over all images of an attack: robust accuracy and its curve, passes per stage, flags."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from pinprick.checks import flag_beaten, flag_noise
from pinprick.metrics.robust_accuracy import robust_accuracy_curve
from pinprick.metrics.unit import Unit
from pinprick.report.row import Row


def attack_totals(attack: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """The totals as plain data; ``attack`` is the description of the attack with its settings."""
    return {
        "flags": _flags(rows),
        "robust_accuracy": _robust_accuracy(attack, rows),
        "robust_accuracy_curve": {
            "pixels": _curve(rows, "pixels"),
            "elements": _curve(rows, "elements"),
        },
        "stages": _stages(rows),
    }


def _flags(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """What the attack shows about the model."""
    noise = max((row.noise or 0.0 for row in rows), default=0.0)
    flags = flag_noise(sum(row.within_noise for row in rows), len(rows), noise)
    flags += flag_beaten(
        sum(row.beaten_by_scores for row in rows), sum(row.backwards > 0 for row in rows)
    )
    return [asdict(flag) for flag in flags]


def _robust_accuracy(attack: Mapping[str, Any], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The number of images that stay correct at each budget of the attack, if it has budgets."""
    unit = attack.get("unit")
    return [
        {
            "budget": budget,
            "unit": unit,
            "withstand": sum(_stays_correct(row, budget, unit) for row in rows),
            "images": len(rows),
        }
        for budget in sorted(set(attack.get("budgets", ()) if rows else ()))
    ]


def _curve(rows: Sequence[Row], unit: Unit) -> list[list[int | float]]:
    """Pairs of a budget and the robust accuracy from there on."""
    needed = [_needed(row, unit) if row.correct else 0 for row in rows]
    infinite = [math.inf if count is None else count for count in needed]
    curve = robust_accuracy_curve(np.array(infinite, dtype=np.float64))
    return [[budget, share] for budget, share in curve]


def _stays_correct(row: Row, budget: int, unit: str | None) -> bool:
    """Whether ``budget`` changed units do not fool; never for clean errors."""
    needed = _needed(row, unit)
    return row.correct and (needed is None or needed > budget)


def _needed(row: Row, unit: str | None) -> int | None:
    return row.needed_pixels if unit == "pixels" else row.needed_elements


def _stages(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Passes of each stage, and the number of images it found the result for."""
    return {
        name: {
            "forwards": sum(row.stages.get(name, (0, 0))[0] for row in rows),
            "backwards": sum(row.stages.get(name, (0, 0))[1] for row in rows),
            "found": sum(row.found_by == name for row in rows),
        }
        for name in dict.fromkeys(name for row in rows for name in row.stages)
    }
