"""What an attack of several stages shows over all pictures: who withstands, and what it cost."""

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from pinprick.cli.console import print_table
from pinprick.report.row import Row
from pinprick.report.words import share


def worst_document(attack: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """Robust accuracy at each budget of ``attack``, and the passes of its stages, for programs."""
    unit = attack.get("unit")
    return {
        "robust_accuracy": [
            {
                "budget": budget,
                "unit": unit,
                "withstand": sum(_withstands(row, budget, unit) for row in rows),
                "images": len(rows),
            }
            for budget in sorted(set(attack.get("budgets", ()) if rows else ()))
        ],
        "stages": {
            name: {
                "forwards": sum(row.stages.get(name, (0, 0))[0] for row in rows),
                "backwards": sum(row.stages.get(name, (0, 0))[1] for row in rows),
                "found": sum(row.found_by == name for row in rows),
            }
            for name in dict.fromkeys(name for row in rows for name in row.stages)
        },
    }


def print_worst(document: Mapping[str, Any]) -> None:
    """The same for people; nothing of an attack that has no stages."""
    if document["robust_accuracy"]:
        told = ", ".join(
            f"{share(100 * one['withstand'] / one['images'])} at {one['budget']} {one['unit']} "
            f"({one['withstand']} of {one['images']})"
            for one in document["robust_accuracy"]
        )
        typer.echo(f"robust accuracy: {told}")
    if document["stages"]:
        print_table(
            ("stage", ">passes in all", ">pictures it did best on"),
            [
                (name, f"{stage['forwards']} + {stage['backwards']}", str(stage["found"]))
                for name, stage in document["stages"].items()
            ],
        )


def _withstands(row: Row, budget: int, unit: str | None) -> bool:
    """Whether so many units do not fool, nor none at all, as of a clean image without an answer."""
    needed = row.needed_pixels if unit == "pixels" else row.needed_elements
    return row.clean.answered and (needed is None or needed > budget)
