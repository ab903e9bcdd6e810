"""``pinprick doctor``: what is installed here, and what to install."""

import typer

from pinprick.cli import options
from pinprick.cli.console import print_table


def main(root: options.Root = None, json: options.Json = False) -> None:
    """Show what is installed here, and what to install.

    Lists versions, devices, extras, datasets and caches. Needs no network and changes nothing. The
    exit status is 0, also where something is missing.
    """
    from dataclasses import asdict
    from json import dumps

    from pinprick.jobs.doctor import diagnose

    found = diagnose(root)
    if json:
        typer.echo(dumps(asdict(found), indent=2))  # print_json would import torch
        return
    rows = [(f"{item.kind} {item.name}", item.state, item.detail) for item in found.items]
    print_table(("what", "here", "detail"), rows, fold=True)
    typer.echo(f"every missing extra: {found.install}" if found.install else "no extra is missing")
