"""The command line: one file per command, and here the list of them."""

import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from pinprick import __version__
from pinprick.cli import (
    attack,
    attacks,
    bench,
    certify,
    check,
    compare,
    completion,
    data,
    doctor,
    explain,
    models,
    prove,
    report,
    selftest,
    train,
    train_generator,
    web,
)
from pinprick.errors import PinprickError, Stopped
from pinprick.freed_memory import keep_freed_memory

_STOPPED = 130  # the exit status after Ctrl-C

app = typer.Typer(
    add_completion=False,  # `pinprick completion` has names of attacks and models, too
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help, at once
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("attack")(attack.main)
app.command("compare")(compare.main)
app.command("explain")(explain.main)
app.command("attacks")(attacks.main)
app.command("check")(check.main)
app.command("prove")(prove.main)
app.command("certify")(certify.main)
app.command("models")(models.main)
app.command("train")(train.main)
app.command("train-generator")(train_generator.main)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")
app.command("report")(report.main)
app.command("web")(web.main)
app.command("completion")(completion.main)
app.command("doctor")(doctor.main)
app.command("selftest")(selftest.main)


@app.callback(invoke_without_command=True)
def pinprick(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Find the fewest pixels that fool an image classifier, and see why they do."""
    if version:
        typer.echo(f"pinprick {__version__}")
        raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; errors that the user can fix become one line and exit status 2.

    Ctrl-C and SIGTERM become one line and exit status 130.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] != ["web"]:  # a server runs on while it has nothing to do
        keep_freed_memory()
    try:
        with _terminated_as_by_ctrl_c():
            status = app(_with_help(arguments), prog_name="pinprick", standalone_mode=False)
        if status == _STOPPED:  # typer gives it for Ctrl-C
            _fail("stopped", status=_STOPPED)
        sys.exit(status)
    except Stopped as error:
        _fail(f"{error}{_way_on(arguments) if error.resumable else ''}", status=_STOPPED)
    except PinprickError as error:
        _fail(str(error))
    except typer.Abort:
        _fail("stopped", status=_STOPPED)
    except Exception as error:
        if not hasattr(error, "format_message"):  # which every wrong use of the command line has
            raise
        command = getattr(getattr(error, "ctx", None), "command_path", "pinprick")
        _fail(f"{error.format_message().rstrip('.')}; see {command} --help")


def _with_help(arguments: list[str]) -> list[str]:
    """The arguments, with --help added where there is no command."""
    return [*arguments, "--help"] if arguments in ([], ["bench"], ["data"]) else arguments


def _fail(message: str, *, status: int = 2) -> None:
    typer.secho(f"pinprick: {' '.join(message.split())}", err=True, fg="red")
    sys.exit(status)


@contextmanager
def _terminated_as_by_ctrl_c() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does, where signals can be handled."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _way_on(arguments: Sequence[str]) -> str:
    """The command that resumes the one that was stopped."""
    command, *rest = (each for each in arguments if each not in ("--resume", "--no-resume"))
    return f"; go on with: {shlex.join(['pinprick', command, '--resume', *rest])}"
