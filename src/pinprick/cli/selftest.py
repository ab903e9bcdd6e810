"""``pinprick selftest``: the attacks against models whose answers are known, on this machine."""

import typer

from pinprick.cli import options


def main(device: options.Device = "auto", json: options.Json = False) -> None:
    """Hold the attacks to exact answers on this machine.

    The exit status is 0 when all passed, and 1 when not: then numbers from this machine are not to
    be trusted, and a report of it is welcome.
    """
    from dataclasses import asdict

    from pinprick.cli.console import print_table
    from pinprick.cli.folder import as_json
    from pinprick.cli.place import find_device
    from pinprick.selftest import run_selftest

    place = str(find_device(device))
    verdicts = run_selftest(place)
    failed = sum(not verdict.passed for verdict in verdicts)
    if json:
        document = {"device": place, "verdicts": [asdict(verdict) for verdict in verdicts]}
        typer.echo(as_json(document))
    else:
        rows = [(v.name, "passed" if v.passed else "FAILED", v.detail) for v in verdicts]
        print_table(("test", "outcome", "detail"), rows)
        typer.echo(f"{len(verdicts) - failed} of {len(verdicts)} passed on {place}")
    if failed:
        raise typer.Exit(1)
