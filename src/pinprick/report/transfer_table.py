"""The transfer matrix of a store: adversarial images of each source, judged by each victim."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
_WEIGHTS = ("weights", "victim_weights")
_VICTIMS = ("victim_models", "victim_weights", "victims", "victims_clean")  # lists, one per victim
_ROW = ("index", "label", "target", "correct", "victims", "victims_clean")


def transfer_matrix(rows: "pl.LazyFrame", cells: "pl.DataFrame") -> Matrix:
    """The transfer from every source to every victim, once per seed; empty without victims.

    Networks of one name with different weights have their hash behind the name.

    Args:
        rows: The rows.
        cells: The cells to read, as ``choose_cells`` gives them.
    """
    import polars as pl

    about = cells.select("cell", *_SOURCE, "seed", "victim_models", *_WEIGHTS).filter(
        pl.col("victim_models").list.len() > 0
    )
    judged = rows.filter(pl.col("victims").list.len() > 0, pl.col("error") == "")
    found = (
        judged.select("cell", *_ROW)
        .collect()
        .join(about, on="cell", maintain_order="left")
        .explode(_VICTIMS)
        .unique(
            [*_SOURCE, *_WEIGHTS, "seed", "victim_models", "index"],
            keep="first",
            maintain_order=True,
        )
    )
    labels = _labels(found)
    matrix: Matrix = {}
    by = (*_SOURCE, *_WEIGHTS, "victim_models", "seed")
    for key, group in found.group_by(by, maintain_order=True):
        name, model, data, goal, weights, victim_weights, victim, _ = map(str, key)
        target = group["target"]
        one = transfer(
            group["correct"].to_numpy(),
            group["label"].to_numpy(),
            None if target.null_count() else target.to_numpy(),
            group["victims_clean"].to_numpy(),
            group["victims"].to_numpy(),
        )
        line = matrix.setdefault((name, labels[model, weights], data, goal), {})
        line.setdefault(labels[victim, victim_weights], []).append(one)
    return dict(sorted(matrix.items()))


def _labels(found: "pl.DataFrame") -> dict[tuple[str, str], str]:
    """The label of each network, by name and weights."""
    networks = {
        *found.select("model", "weights").iter_rows(),
        *found.select("victim_models", "victim_weights").iter_rows(),
    }
    names = [name for name, _ in networks]
    return {
        (name, weights): name if names.count(name) == 1 else f"{name} ({weights[:8]})"
        for name, weights in networks
    }


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
