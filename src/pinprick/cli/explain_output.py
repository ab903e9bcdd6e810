"""What ``pinprick explain`` prints and writes per picture: two tables, and a document."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer

from pinprick.cli.console import print_table
from pinprick.cli.place import surroundings
from pinprick.cli.roll import Roll, print_note
from pinprick.explain.explain_result import POLISH_PASSES, Explained
from pinprick.explain.noise.explanation import Explanation
from pinprick.explain.noise.labels import LABELS
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.explain.noise.totals import Totals
from pinprick.model import Classifier
from pinprick.report.explain_gallery import ExplainedPicture
from pinprick.report.words import FIXED, cut, fitted, outcome_words, prediction_words, share, signed

# Columns and their widths: with 3 between columns and 1 at the edges, a table has 100 columns.
_ATTACKED = (("picture", 18), ("label", 18), ("before", 18), ("after", 18), ("outcome", 14))
_EXPLAINED = (
    ("picture", 18),
    (">pixels", 12),
    (">groups", 6),
    (">obscuring", 9),
    (">leading", 7),
    ("kinds of groups", 21),
    (">not\nneeded", 7),
)
_LINES = 40  # a longer table is cut


def print_explanations(title: str, shown: Sequence[ExplainedPicture], roll: Roll) -> None:
    """Two tables, what the attack did and what the groups do, and what their columns mean."""
    typer.echo(title)
    labels = roll.label_words[: len(shown)]  # a run may have stopped before the last
    pairs = zip(shown, labels, strict=True)
    _print(_ATTACKED, [_attack_cells(*pair) for pair in pairs])
    right = [one for one in shown if one.row.correct]
    fooled = sum(one.row.success for one in right)
    typer.echo(f"fooled {fooled} of {len(right)} images that were classified correctly")
    print_note(roll)
    _print(_EXPLAINED, [_group_cells(one) for one in shown])
    typer.echo(
        "obscuring: fall of the true class's score; leading: rise of the other class's score"
    )
    typer.echo("scores are logits minus their mean; not needed: pixels that can be put back")
    polished = polish_words([one.explanation for one in shown])
    if polished:
        typer.echo(polished)


def _print(columns: Sequence[tuple[str, int]], rows: Sequence[Sequence[str]]) -> None:
    print_table(
        [name for name, _ in columns],
        [
            [fitted(cell, width) for cell, (_, width) in zip(row, columns, strict=True)]
            for row in rows[:_LINES]
        ],
    )
    if len(rows) > _LINES:
        typer.echo(f"{len(rows) - _LINES} more are in explanation.json")


def explain_document(
    told: Explained,
    shown: Sequence[ExplainedPicture],
    roll: Roll,
    model: Classifier,
    settings: NoiseSettings,
    data: str | None = None,
    totals: Totals | None = None,
) -> dict[str, Any]:
    """Every number of the images done so far, ``told`` being the latest batch of them."""
    result = told.result
    return {
        "format": 2,
        "attack": result.attack,
        "model": result.model,
        "data": data,
        "seed": result.seed,
        "seconds": sum(one.row.seconds for one in shown),
        **surroundings(model),
        "settings": asdict(settings),
        "map": None if told.true_maps is None else told.true_maps.method,
        "layer": None if told.true_maps is None else told.true_maps.layer,
        "totals": None if totals is None else totals.to_dict(),
        "unreadable": roll.unreadable_files(),
        "images": [
            {**one.plain(), "label_from": source}
            for one, source in zip(shown, roll.label_from, strict=False)
        ],
    }


def spare_words(explanation: Explanation) -> str:
    """Whether every changed pixel is needed, as far as that is known."""
    if explanation.spare_pixels is not None:
        return str(explanation.spare_pixels or "none")
    most = explanation.most_spare_pixels
    return "" if most is None else f"at most {most}"


def polish_words(told: Sequence[Explanation]) -> str:
    """Whether polishing finished; empty where nothing was polished."""
    polished = [one for one in told if one.settled is not None]
    cut = [one for one in polished if not one.settled]
    if not cut:
        return f"polishing finished: n = {len(polished)} images" if polished else ""
    most = max(one.most_spare_pixels or 0 for one in cut)
    rest = f"at most {most} pixels are not needed" if most else "all changed pixels are needed"
    return (
        f"polishing stopped after {POLISH_PASSES} forward passes in {len(cut)} of {len(polished)} "
        f"images: {rest}"
    )


def _attack_cells(one: ExplainedPicture, label: str) -> tuple[str, ...]:
    return (
        cut(one.photo.name, 18),
        label,
        prediction_words(one.row.clean),
        prediction_words(one.row.adversarial),
        _outcome(one),
    )


def _group_cells(one: ExplainedPicture) -> tuple[str, ...]:
    row, told = one.row, one.explanation
    kinds = Counter(group.shapley.label for group in told.groups)
    effects = (signed(told.obscuring), signed(told.leading)) if told.groups else ("", "")
    return (
        cut(one.photo.name, 18),
        f"{row.l0_pixels} ({share(row.l0_pixels_percent)})",
        str(len(told.groups)),
        *effects,
        ", ".join(f"{kinds[name]}{FIXED}{name}" for name in LABELS if kinds[name]),
        spare_words(told),
    )


def _outcome(one: ExplainedPicture) -> str:
    failed = one.explanation.status == "failed"
    return f"failed: {outcome_words(one.row)}" if failed else outcome_words(one.row)
