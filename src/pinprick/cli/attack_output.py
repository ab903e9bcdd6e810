"""What ``pinprick attack`` prints and writes: a table for people, a document for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import typer

from pinprick.checks import Flag, flag_beaten, flag_noise
from pinprick.cli.console import print_table
from pinprick.cli.place import surroundings
from pinprick.cli.roll import Roll, print_note
from pinprick.cli.time_left import print_out_of_time
from pinprick.cli.worst_output import print_worst, worst_document
from pinprick.model import Classifier
from pinprick.report.gallery import Exhibit
from pinprick.report.words import outcome_words, prediction_words, share
from pinprick.result import AttackResult

COLUMNS = (
    "picture",
    "label",
    "before",
    "after",
    ">pixels",
    ">elements",
    ">passes",
    ">seconds",
    "outcome",
)


def print_attacks(
    title: str, shown: Sequence[Exhibit], roll: Roll, attack: Mapping[str, Any]
) -> None:
    """The table, how many were fooled of those that were right, and who withstands how much."""
    typer.echo(title)
    labels = roll.label_words[: len(shown)]  # a run may have stopped before the last
    print_table(COLUMNS, [_cells(*pair) for pair in zip(shown, labels, strict=True)])
    right = [exhibit for exhibit in shown if exhibit.row.correct]
    fooled = sum(exhibit.row.success for exhibit in right)
    typer.echo(f"fooled {fooled} of {len(right)} that were right to begin with")
    print_out_of_time([exhibit.row for exhibit in shown])
    _print_start(shown, attack.get("started_from"))
    print_worst(worst_document(attack, [exhibit.row for exhibit in shown]))
    for flag in _flags(shown):
        typer.echo(f"{flag.name}: {flag.sentence}; {flag.advice}")
    print_note(roll)


def outcome(exhibit: Exhibit) -> str:
    """How it went, and whether the PNG on the disk still fools."""
    row = exhibit.row
    lost = row.success and not row.skipped and not exhibit.reread_fools
    return (
        f"fooled, but not as PNG: {prediction_words(exhibit.reread)}"
        if lost
        else outcome_words(row)
    )


def attack_document(
    result: AttackResult,
    shown: Sequence[Exhibit],
    roll: Roll,
    model: Classifier,
    data: str | None = None,
) -> dict[str, Any]:
    """Every number of the images done so far, ``result`` being the latest batch of them."""
    return {
        "format": 1,
        "attack": result.attack,
        "model": result.model,
        "data": data,
        "sent": None if model.sent is None else vars(model.sent),
        "seed": result.seed,
        "seconds": sum(exhibit.row.seconds for exhibit in shown),
        **surroundings(model),
        "unreadable": roll.unreadable_files(),
        "flags": [asdict(flag) for flag in _flags(shown)],
        **worst_document(result.attack, [exhibit.row for exhibit in shown]),
        "images": [
            {**exhibit.plain(), "label_from": source}
            for exhibit, source in zip(shown, roll.label_from, strict=False)
        ],
    }


def _flags(shown: Sequence[Exhibit]) -> list[Flag]:
    """What the attack shows of the model, over all pictures together."""
    rows = [exhibit.row for exhibit in shown]
    noise = max((row.noise or 0.0 for row in rows), default=0.0)
    beaten = flag_beaten(
        sum(row.beaten_by_scores for row in rows), sum(row.backwards > 0 for row in rows)
    )
    return flag_noise(sum(row.within_noise for row in rows), len(rows), noise) + beaten


def _print_start(shown: Sequence[Exhibit], made_by: Mapping[str, Any] | None) -> None:
    """What the passes of the table leave out: those of the attack that this one began at."""
    spent = [exhibit.row.start for exhibit in shown if exhibit.row.start is not None]
    if made_by is not None and "model" in made_by:
        forwards, backwards = (sum(passes) for passes in zip(*spent, strict=True))
        typer.echo(
            f"begun at what {made_by['name']} made on {made_by['model']}, whose {forwards} + "
            f"{backwards} passes in all are listed apart"
        )


def _cells(exhibit: Exhibit, label: str) -> tuple[str, ...]:
    row = exhibit.row
    return (
        exhibit.photo.name,
        label,
        prediction_words(row.clean),
        prediction_words(row.adversarial),
        f"{row.l0_pixels} ({share(row.l0_pixels_percent)})",
        f"{row.l0_elements} ({share(row.l0_elements_percent)})",
        f"{row.forwards} + {row.backwards}",
        f"{row.seconds:.2f}",
        outcome(exhibit),
    )
