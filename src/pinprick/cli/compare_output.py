"""What ``pinprick compare`` prints and writes: a table for people, a document for programs."""

from collections.abc import Mapping, Sequence
from typing import Any

from pinprick.attacks.build import describe
from pinprick.attacks.card import Attack
from pinprick.cli.console import print_table
from pinprick.cli.inputs import Inputs
from pinprick.cli.place import surroundings
from pinprick.cli.roll import print_note
from pinprick.cli.time_left import print_out_of_time
from pinprick.model import Classifier
from pinprick.report.compare_figure import Column
from pinprick.report.comparison import Comparison
from pinprick.report.words import outcome_words, prediction_words, share

_COUNTS = (">pixels", ">elements", ">passes", ">seconds", "outcome")


def print_comparisons(comparisons: Sequence[Comparison], inputs: Inputs) -> None:
    """One line for each picture and attack."""
    judged = any(comparison.judged is not None for comparison in comparisons)
    columns = (
        "picture",
        "label",
        "before",
        "attack",
        "after",
        *(("judge",) if judged else ()),
        *_COUNTS,
    )
    print_table(
        columns,
        [
            (comparison.photo.name, label, prediction_words(comparison.clean), *_cells(column))
            for comparison, label in zip(comparisons, inputs.label_words, strict=True)
            for column in comparison.columns
        ],
    )
    print_out_of_time([column.row for one in comparisons for column in one.columns])
    print_note(inputs)


def compare_document(
    comparisons: Sequence[Comparison],
    attacks: Sequence[Attack],
    inputs: Inputs,
    model: Classifier,
    judge: Classifier | None,
    seed: int,
    data: str | None = None,
    limits: Mapping[str, float | int | None] | None = None,
) -> dict[str, Any]:
    return {
        "format": 1,
        "attacks": [describe(attack) for attack in attacks],
        "limits": dict(limits or {}),
        "model": model.name,
        "data": data,
        "judge": None if judge is None else judge.name,
        "seed": seed,
        **surroundings(model),
        "unreadable": inputs.unreadable_files(),
        "images": [
            {**comparison.plain(), "label_from": source}
            for comparison, source in zip(comparisons, inputs.label_from, strict=True)
        ],
    }


def _cells(column: Column) -> tuple[str, ...]:
    row = column.row
    return (
        column.headed(column.name),
        prediction_words(row.adversarial),
        *(() if column.judged is None else (prediction_words(column.judged),)),
        f"{row.l0_pixels} ({share(row.l0_pixels_percent)})",
        f"{row.l0_elements} ({share(row.l0_elements_percent)})",
        f"{row.forwards} + {row.backwards}",
        f"{row.seconds:.2f}",
        outcome_words(row),
    )
