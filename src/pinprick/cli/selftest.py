"""``pinprick selftest``: test the attacks on this machine against known answers."""

from typing import TYPE_CHECKING, Annotated

import typer

from pinprick.cli import options
from pinprick.cli.console import print_json, print_table

if TYPE_CHECKING:
    from pinprick.contract.check_attack import Verdict


def main(
    attack: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Hold this attack to the contract of all attacks instead, on the CPU. One of "
            "yours goes by package.module:Class or file.py:Class.",
        ),
    ] = None,
    option: options.AttackOptions = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out the slow attacks: seconds, not minutes.")
    ] = False,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Test the attacks on this machine against known answers.

    The exit status is 0 when all passed, and 1 when not. Then do not trust numbers from this
    machine, and please report it. With --quick it takes about 15 seconds on one core, and says
    which attacks it left out.

    With --attack the table has one line per clause of the contract, with what the attack breaks.
    The exit status is then 2, since the attack needs fixing.
    """
    from pinprick.attacks.build import build
    from pinprick.contract.check_attack import contract_verdicts
    from pinprick.errors import BadInput
    from pinprick.jobs.device import find_device
    from pinprick.selftest import SLOW, run_selftest

    if attack is not None:
        if quick:
            raise BadInput("--quick leaves out attacks; give it without --attack")
        chosen = build({"name": attack, **options.read_options(option or [])})
        _report(
            contract_verdicts(chosen),
            {"attack": chosen.describe()},
            f"by {chosen.card.name}",
            json,
            status=2,
        )
        return
    if option:
        raise BadInput("--option belongs to the attack that --attack names; give both")
    found = str(find_device(device))
    left_out = list(SLOW) if quick else []
    verdicts = run_selftest(found, quick=quick)
    if left_out and not json:
        typer.echo(f"left out by --quick, as they are slow: {', '.join(left_out)}")
    _report(verdicts, {"device": found, "left_out": left_out}, f"on {found}", json, status=1)


def _report(
    verdicts: "list[Verdict]", facts: dict[str, object], what: str, json: bool, *, status: int
) -> None:
    """Print the verdicts, and exit with ``status`` if one failed."""
    from dataclasses import asdict

    failed = sum(not verdict.passed for verdict in verdicts)
    if json:
        print_json({**facts, "verdicts": [asdict(verdict) for verdict in verdicts]})
    else:
        rows = [(v.name, "passed" if v.passed else "FAILED", v.detail) for v in verdicts]
        print_table(("test", "outcome", "detail"), rows, fold=True)
        typer.echo(f"{len(verdicts) - failed} of {len(verdicts)} passed {what}")
    if failed:
        raise typer.Exit(status)
