"""``pinprick models``: the models that can be loaded by name."""

from typing import Annotated, Any

import typer

from pinprick.cli import options
from pinprick.cli.console import print_json, print_table


def main(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="pinprick, torchvision, timm or robustbench; by default, where models come from.",
            show_default=False,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """List the models that can be loaded by name.

    Without SOURCE, shows where models come from and what to install for that. Also lists the models
    that come with the package, with the accuracies on their cards.
    """
    from pinprick.zoo.registry import list_models

    entries = list_models(source or "pinprick")
    if json:
        print_json(entries if source else {"sources": _sources(), "shipped": entries})
        return
    if source is None:
        _print_sources()
    if source in (None, "pinprick"):
        _print_shipped(entries)
    elif source == "torchvision":
        print_table(
            ("name", "weights"),
            ((one["name"], ", ".join(one["weights"])) for one in entries),
            fold=True,
        )
    else:
        for one in entries:
            typer.echo(one["name"])


def _sources() -> list[dict[str, Any]]:
    from dataclasses import asdict

    from pinprick.zoo.registry import SOURCES

    return [{**asdict(one), "ready": one.ready} for one in SOURCES]


def _print_sources() -> None:
    from pinprick.zoo.registry import SOURCES

    print_table(
        ("--model", "what it is", "here"),
        ((one.form, one.what, "ready" if one.ready else one.install) for one in SOURCES),
        fold=True,
    )


def _print_shipped(entries: list[dict[str, Any]]) -> None:
    from pinprick.zoo.facts import accuracy_under, l0_attack, percent

    if not entries:
        typer.echo("no models come with this copy of the package")
        return
    rows: list[tuple[str, ...]] = []
    measured: dict[str, list[str]] = {}
    for one in entries:
        facts = one["facts"]
        pgd, strong = facts.get("pgd") or {}, facts.get("strong_pgd") or {}
        few = facts.get("l0_elements") or {}
        data = facts.get("data")
        rows.append(
            (
                one["name"],
                one["net"],
                str(data.get("name", "-") if isinstance(data, dict) else data or "-"),
                percent(facts.get("accuracy")),
                accuracy_under(pgd),
                accuracy_under(strong),
                ", ".join(f"{percent(s)} at {k}" for k, s in (few.get("accuracy") or {}).items())
                or "-",
            )
        )
        if few:
            measured.setdefault(l0_attack(facts), []).append(one["name"])
    columns = ("shipped", "net", "data", ">accuracy", ">PGD", ">stronger PGD", ">elements changed")
    print_table(columns, rows, fold=True)
    for attack, names in measured.items():
        models = f" of {', '.join(names)}" if len(measured) > 1 else ""
        typer.echo(f"elements changed{models}: {attack}")
