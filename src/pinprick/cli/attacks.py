"""``pinprick attacks``: the attacks there are, and what each does."""

import typer

from pinprick.cli import options


def main(json: options.Json = False) -> None:
    """List the attacks with the facts from their cards."""
    from dataclasses import asdict

    from pinprick.attacks import ATTACKS
    from pinprick.attacks.build import describe
    from pinprick.cli.console import print_table
    from pinprick.cli.folder import as_json

    if json:
        cards = [
            {
                **asdict(attack.facts()),
                "options": describe(attack),
                "presets": {name: dict(preset) for name, preset in attack.presets.items()},
            }
            for attack in (cls() for cls in ATTACKS.values())
        ]
        typer.echo(as_json(cards))
        return
    columns = ("name", "title", "norm", "kind", "needs", "targeted", "mask", "random", "paper")
    rows = []
    for cls in ATTACKS.values():
        card = cls().facts()
        marks = ("yes" if fact else "-" for fact in (card.targeted, card.masked, card.random))
        norm = f"{card.norm}, {card.unit}" if card.unit else card.norm
        rows.append((card.name, card.title, norm, card.kind, card.access, *marks, card.paper))
    print_table(columns, rows)
    named = [f"{name} {', '.join(cls.presets)}" for name, cls in ATTACKS.items() if cls.presets]
    typer.echo(f"presets, as in --option preset=quick: {'; '.join(named)}")
