"""``pinprick selftest``: test the attacks on this machine against known answers."""

import typer

from pinprick.cli import options
from pinprick.cli.console import print_json, print_table


def main(device: options.Device = "auto", json: options.Json = False) -> None:
    """Test the attacks on this machine against known answers.

    The exit status is 0 when all passed, and 1 when not. Then do not trust numbers from this
    machine, and please report it.
    """
    from dataclasses import asdict

    from pinprick.jobs.device import find_device
    from pinprick.selftest import run_selftest

    found = str(find_device(device))
    verdicts = run_selftest(found)
    failed = sum(not verdict.passed for verdict in verdicts)
    if json:
        print_json({"device": found, "verdicts": [asdict(verdict) for verdict in verdicts]})
    else:
        rows = [(v.name, "passed" if v.passed else "FAILED", v.detail) for v in verdicts]
        print_table(("test", "outcome", "detail"), rows)
        typer.echo(f"{len(verdicts) - failed} of {len(verdicts)} passed on {found}")
    if failed:
        raise typer.Exit(1)
