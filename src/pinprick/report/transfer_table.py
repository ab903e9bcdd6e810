"""The transfer matrix of a store: adversarial images of each source, judged by each victim."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pinprick.metrics.estimate import Estimate
from pinprick.metrics.over_seeds import mean_and_deviation
from pinprick.metrics.transfer import Transfer, transfer
from pinprick.metrics.wilson import wilson_interval
from pinprick.report.summary_tables import percent_text
from pinprick.report.text_table import TextTable

if TYPE_CHECKING:
    import polars as pl

Matrix = dict[tuple[str, ...], dict[str, list[Transfer]]]  # source, victim, seed

_SOURCE = ("name", "model", "data", "goal")
_ROW = ("label", "target", "correct", "victims", "victims_clean", "error")


def transfer_matrix(rows: "pl.LazyFrame", cells: "pl.DataFrame") -> Matrix:
    """The transfer from every source to every victim, once per seed; empty without victims.

    Args:
        rows: The rows.
        cells: The cells to read, as ``choose_cells`` gives them.
    """
    import polars as pl

    about = cells.select("cell", *_SOURCE, "seed", "victim_models").filter(
        pl.col("victim_models").list.len() > 0
    )
    judged = rows.select("cell", *_ROW).filter(
        pl.col("victims").list.len() > 0, pl.col("error") == ""
    )
    found = judged.drop("error").collect().join(about, on="cell", maintain_order="left")
    matrix: Matrix = {}
    groups = found.group_by(*_SOURCE, "seed", "victim_models", maintain_order=True)
    for (*source, _, victims), group in groups:
        after, clean = (
            np.array(group[name].to_list(), dtype=np.int64).reshape(len(group), -1)
            for name in ("victims", "victims_clean")
        )
        target = group["target"]
        line = matrix.setdefault(tuple(map(str, source)), {})
        for number, victim in enumerate(cast(list[str], victims)):
            one = transfer(
                group["correct"].to_numpy(),
                group["label"].to_numpy(),
                None if target.null_count() else target.to_numpy(),
                clean[:, number],
                after[:, number],
            )
            line.setdefault(victim, []).append(one)
    return dict(sorted(matrix.items()))


def transfer_table(matrix: Matrix) -> TextTable:
    """One line per source, one column per victim."""
    victims = sorted({victim for line in matrix.values() for victim in line})
    rows = [
        (attack, model, f"{data}, {goal}", *(_words(line.get(victim, [])) for victim in victims))
        for (attack, model, data, goal), line in matrix.items()
    ]
    caption = (
        "Transfer: fooling rate over images that source and victim classify correctly, and in "
        "parentheses the clean error of the victim on images that the source classifies correctly"
    )
    return TextTable(caption, ("attack", "source", "data", *victims), rows)


def transfer_lines(matrix: Matrix) -> list[dict[str, Any]]:
    """Every number of the matrix, one line per source and victim."""
    return [
        {
            **dict(zip(("attack", "model", "data", "goal"), source, strict=True)),
            "victim": victim,
            "seeds": len(seeds),
            "images": seeds[0].fooled.images,
            "fooling_rate": _estimate(seeds),
            "clean_error": seeds[0].floor.rate,
        }
        for source, line in matrix.items()
        for victim, seeds in line.items()
    ]


def _words(seeds: Sequence[Transfer]) -> str:
    if not seeds or not seeds[0].fooled.images:
        return "-"
    return f"{percent_text(_estimate(seeds))} ({100 * seeds[0].floor.rate:.1f} %)"


def _estimate(seeds: Sequence[Transfer]) -> Estimate:
    """The interval is that of one run: further seeds are not further images."""
    images = seeds[0].fooled.images
    rate, deviation = mean_and_deviation([one.fooled.rate for one in seeds])
    low, high = wilson_interval(rate * images if images else 0, images)
    return Estimate(rate, low, high, deviation)
