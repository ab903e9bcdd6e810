"""What ``pinprick explain`` prints and writes of each picture: a table, and a document."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer

from pinprick.cli.console import print_table
from pinprick.cli.place import surroundings
from pinprick.cli.roll import Roll, print_note
from pinprick.explain.explained import POLISH_PASSES, Explained
from pinprick.explain.explanation import Explanation
from pinprick.explain.labels import LABELS
from pinprick.explain.settings import NoiseSettings
from pinprick.explain.totals import Totals
from pinprick.model import Classifier
from pinprick.report.explain_gallery import ExplainedPicture
from pinprick.report.words import fate, said, share

COLUMNS = (
    "picture",
    "label",
    "before",
    "after",
    ">pixels",
    ">groups",
    ">obscuring",
    ">leading",
    "kinds",
    "spare",
    "outcome",
)
_LINES = 40  # a longer table is cut


def print_explanations(title: str, shown: Sequence[ExplainedPicture], roll: Roll) -> None:
    """The table, and what its columns mean."""
    typer.echo(title)
    rows = [_cells(*pair) for pair in zip(shown, roll.label_words, strict=True)]
    print_table(COLUMNS, rows[:_LINES])
    if len(rows) > _LINES:
        typer.echo(f"and {len(rows) - _LINES} more, which are in explanation.json")
    right = [one for one in shown if one.row.correct]
    fooled = sum(one.row.success for one in right)
    typer.echo(f"fooled {fooled} of {len(right)} that were right to begin with")
    typer.echo(
        "obscuring: how far the score of the true class falls; leading: how far that of the other "
        "class rises; both in logits, less the mean of all"
    )
    polished = polish_words([one.explanation for one in shown])
    if polished:
        typer.echo(polished)
    print_note(roll)


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
    """Whether polishing came to its end; empty where nothing was polished."""
    polished = [one for one in told if one.settled is not None]
    cut = [one for one in polished if not one.settled]
    if not cut:
        return "polished until no pixel can be spared" if polished else ""
    whose = "" if len(polished) == 1 else f" in {len(cut)} of {len(polished)} images"
    most = max(one.most_spare_pixels or 0 for one in cut)
    rest = (
        f"at most {most} pixels could be spared, each by itself" if most else "none can be spared"
    )
    return f"polished, but cut off after {POLISH_PASSES} passes{whose}: {rest}"


def _cells(one: ExplainedPicture, label: str) -> tuple[str, ...]:
    row, told = one.row, one.explanation
    kinds = Counter(group.shapley.label for group in told.groups)
    effects = (f"{told.obscuring:+.2f}", f"{told.leading:+.2f}") if told.groups else ("", "")
    return (
        one.photo.name,
        label,
        said(row.clean),
        said(row.adversarial),
        f"{row.l0_pixels} ({share(row.l0_pixels_percent)})",
        str(len(told.groups)),
        *effects,
        ", ".join(f"{kinds[name]} {name}" for name in LABELS if kinds[name]),
        spare_words(told),
        _outcome(one),
    )


def _outcome(one: ExplainedPicture) -> str:
    failed = one.explanation.status == "failed"
    return f"failed: {fate(one.row)}" if failed else fate(one.row)
