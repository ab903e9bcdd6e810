"""Help is there for every command, and does not wait for torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Run
from pinprick import __version__

COMMANDS = (
    *("attack", "compare", "attacks", "certify", "check", "doctor", "models", "prove", "report"),
    "selftest",
)


def test_the_list_of_commands(run: Run) -> None:
    shell = run("--help")
    assert shell.status == 0
    assert "Find the fewest pixels" in shell.out
    for command in COMMANDS:
        assert f"\n  {command} " in shell.out
    assert "..." not in shell.out.partition("Commands:")[2]  # each says its piece in one line
    assert run().out == shell.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(run: Run, command: str) -> None:
    shell = run(command, "--help")
    assert shell.status == 0
    assert f"Usage: pinprick {command}" in shell.out
    assert "--json" in shell.out


def test_attack_and_compare_explain_their_options(run: Run) -> None:
    shared = "model option label target out seed batch-size device quiet json"
    for command, own in (("attack", "attack"), ("compare", "attacks judge")):
        text = run(command, "--help").out
        for option in f"{shared} {own}".split():
            assert f"\n  --{option} " in text


def test_the_version(run: Run) -> None:
    assert run("--version").out == f"pinprick {__version__}\n"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from pinprick.cli import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n"
        "    print({'torch', 'numpy', 'matplotlib', 'rich', 'PIL'} & set(sys.modules))\n"
    )
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "set()"
