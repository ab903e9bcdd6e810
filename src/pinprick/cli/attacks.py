"""``pinprick attacks``: list the attacks, or show one of them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinprick.cli import options
from pinprick.cli.console import print_json, print_table

if TYPE_CHECKING:
    from pinprick.attacks.card import Attack


def main(
    name: Annotated[str | None, typer.Argument(help="Show this attack.")] = None,
    bibtex: Annotated[
        bool, typer.Option("--bibtex", help="Print only the BibTeX entry of each paper.")
    ] = False,
    json: options.Json = False,
) -> None:
    """List the attacks, or show one of them.

    With a name: its facts, its settings with defaults, ranges and meaning, its presets, and its
    differences from the paper.
    """
    from pinprick.attacks import ATTACKS, find_attack
    from pinprick.attacks.papers import bibtex as entry

    chosen = list(ATTACKS.values()) if name is None else [find_attack(name)]
    if bibtex:
        typer.echo("\n\n".join(dict.fromkeys(entry(cls.card.name) for cls in chosen)))
    elif json:
        cards = [_document(cls) for cls in chosen]
        print_json(cards if name is None else cards[0])
    elif name is None:
        _print_list(chosen)
    else:
        _print_page(chosen[0])


def _document(cls: "type[Attack]") -> dict[str, Any]:
    from dataclasses import asdict

    from pinprick.attacks.build import all_settings
    from pinprick.attacks.papers import bibtex as entry
    from pinprick.settings import meanings_of, ranges_of

    attack = cls()
    return {
        **asdict(attack.facts()),
        "options": all_settings(attack),
        "meanings": meanings_of(cls),
        "ranges": ranges_of(cls),
        "presets": {name: dict(preset) for name, preset in cls.presets.items()},
        "bibtex": entry(cls.card.name),
    }


def _print_list(attacks: "list[type[Attack]]") -> None:
    from pinprick.attacks.card import norm_and_units

    columns = ("name", "title", "norm", "kind", "needs", "targeted", "mask", "random", "paper")
    rows = []
    for cls in attacks:
        card = cls().facts()
        marks = ("yes" if fact else "-" for fact in (card.targeted, card.masked, card.random))
        norm = norm_and_units(cls)
        rows.append((card.name, card.title, norm, card.kind, card.access, *marks, card.paper))
    print_table(columns, rows, fold=True)
    named = [f"{cls.card.name} {', '.join(cls.presets)}" for cls in attacks if cls.presets]
    typer.echo(f"presets, as in --option preset=quick: {'; '.join(named)}")
    typer.echo("settings of one attack, and its differences from the paper: pinprick attacks NAME")


def _print_page(cls: "type[Attack]") -> None:
    from pinprick.attacks.build import all_settings
    from pinprick.attacks.card import norm_and_units
    from pinprick.attacks.papers import PAPERS
    from pinprick.report.words import value_words
    from pinprick.settings import meanings_of, ranges_of

    attack = cls()
    card, meanings, ranges = attack.facts(), meanings_of(cls), ranges_of(cls)
    typer.echo(f"{card.title} ({card.name}, revision {card.revision})")
    if (paper := PAPERS.get(card.name)) is not None:
        typer.echo(
            f"{paper.authors}: {paper.plain_title}. {paper.venue}, {paper.year}. {card.paper}"
        )
    passes = (
        "no bound"
        if card.max_forwards is None or card.max_backwards is None
        else f"{card.max_forwards} forward and {card.max_backwards} backward"
    )
    yes = {True: "yes", False: "no"}
    facts = (
        ("keeps small", norm_and_units(cls)),
        ("kind", card.kind),
        ("needs", card.access),
        ("targets", yes[card.targeted]),
        ("mask", yes[card.masked]),
        ("start from another result", yes[card.starts]),
        ("random", yes[card.random]),
        ("passes per image, at most", passes),
    )
    print_table(("fact", ""), facts, fold=True)
    rows = [
        (key, value_words(value), ranges[key], meanings.get(key, ""))
        for key, value in all_settings(attack).items()
        if key != "name"
    ]
    if rows:
        print_table(("setting", "default", "allowed", "meaning"), rows, fold=True)
    for name, preset in cls.presets.items():
        typer.echo(
            f"preset={name}: {', '.join(f'{key}={value_words(v)}' for key, v in preset.items())}"
        )
    if card.differences:
        typer.echo("differences from the paper or its code:")
        for sentence in card.differences:
            typer.echo(f"- {sentence}")
    elif card.paper:
        typer.echo("no differences from the paper")
