"""The script for the Tab key, read by the shell that it is for."""

import shutil
import subprocess
from pathlib import Path

import pytest

from cli.conftest import Run
from pinprick import ATTACKS
from pinprick.cli.bench import Engine

TAB = """
. "$1"; COMP_LINE="$2"; COMP_POINT=${#COMP_LINE}
_pinprick; printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "script"
    path.write_text(run("completion", "bash").out)
    return path


def tab(script: Path, line: str) -> list[str]:
    """What bash offers at the end of the line."""
    done = subprocess.run(
        ["bash", "-c", TAB, "bash", str(script), line], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_options_and_names(script: Path) -> None:
    assert tab(script, "pinprick att") == ["attack", "attacks"]
    assert tab(script, "pinprick bench ver") == ["verify"]
    assert tab(script, "pinprick attack cat.jpg --max-p") == ["--max-passes"]
    sparse = [name for name in ATTACKS if name.startswith("sparse_")]
    assert tab(script, "pinprick attack --attack sparse_") == sparse
    assert set(tab(script, "pinprick attacks ")) == set(ATTACKS)
    assert tab(script, "pinprick compare --attacks ifgsm,deepf") == ["ifgsm,deepfool"]
    assert tab(script, "pinprick attack --format la") == ["latex"]
    assert tab(script, "pinprick data get mni") == ["mnist"]
    assert tab(script, "pinprick train --recipe fast") == ["fast_at"]
    assert tab(script, "pinprick bench run plan.toml --engine ") == list(Engine)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_only_what_follows_the_last_colon(script: Path) -> None:
    shipped = tab(script, "pinprick attack --model pinprick:fash")
    assert "fashion_cnn" in shipped
    assert all(name.startswith("fashion_cnn") for name in shipped)
    assert "resnet50" in tab(script, "pinprick attack --model torchvision:resnet5")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_files_are_left_to_the_shell(script: Path) -> None:
    assert tab(script, "pinprick attack ca") == []
    assert tab(script, "pinprick attack --mask ") == []
    assert tab(script, "pinprick attack --start ") == []
    assert "complete -o default" in script.read_text()


def test_zsh_and_fish_get_the_same_words(run: Run, script: Path) -> None:
    bash, zsh, fish = (
        script.read_text(),
        run("completion", "zsh").out,
        run("completion", "fish").out,
    )
    function = bash.partition("_pinprick() {")[0]
    assert zsh.startswith(f"#compdef pinprick\n{function}")
    seen = "complete -c pinprick -n '__fish_seen_subcommand_from"
    assert f"{seen} attack' -l attack -x -a '{' '.join(ATTACKS)}'" in fish
    assert f"{seen} bench; and __fish_seen_subcommand_from run' -l retry-errors\n" in fish
    assert f"{seen} attack' -l mask -r\n" in fish
    assert f"{seen} web' -l no-open\n" in fish


def test_another_shell_is_refused(run: Run) -> None:
    shell = run("completion", "tcsh")
    assert shell.status == 2
    assert "'bash', 'zsh', 'fish'" in shell.err
