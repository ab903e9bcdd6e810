"""Every step of the page for newcomers runs, in order, and prints what the page shows."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from pinprick.attacks import ATTACKS
from pinprick.cli import main
from pinprick.contract.check_attack import Verdict
from pinprick.selftest import SLOW

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "start" / "ten_minutes.md"
BLOCK = re.compile(r"^```(?P<language>python|shell|text)\n(?P<text>.*?)^```$", re.M | re.S)
INSTALLATION = ("python -m venv", ". .venv", "pip install")


def blocks() -> list[tuple[str, str]]:
    """The language and the text of each block."""
    return [(one["language"], one["text"]) for one in BLOCK.finditer(PAGE.read_text("utf-8"))]


def without_numbers(text: str) -> list[str]:
    """The lines with every number replaced: times and counts differ between machines."""
    plain = re.sub(r"\d[\d.,]*", "#", re.sub(r"─+", "─", text))
    return [" ".join(line.split()) for line in plain.splitlines() if line.strip()]


@pytest.mark.plain
@pytest.mark.slow
def test_every_step_runs_and_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``test_selftest.py`` runs the self-test itself."""
    passed = [Verdict(name, True, "") for name in ("arithmetic", *ATTACKS) if name not in SLOW]
    monkeypatch.setattr("pinprick.selftest.run_selftest", lambda device, quick: passed)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # no short test of which number is faster
    monkeypatch.setattr(sys, "path", sys.path.copy())
    names: dict[str, object] = {"__name__": "page"}
    printed: list[str] = []
    for language, text in blocks():
        if language == "text":
            missing = [line for line in without_numbers(text) if line not in printed]
            assert not missing, f"not printed: {missing}"
            continue
        if language == "python":
            exec(compile(text, str(PAGE), "exec"), names)
        else:
            run_lines(text)
        printed = without_numbers(capsys.readouterr().out)
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert list((tmp_path / "first").glob("*-figure.png"))


def run_lines(text: str) -> None:
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith(INSTALLATION):
            continue
        program, *arguments = shlex.split(line)
        assert program == "pinprick", line
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert not stop.value.code, line


def test_the_page_has_steps_of_both_kinds_and_shows_output() -> None:
    languages = [language for language, text in blocks() if text.strip()]
    assert languages.count("shell") >= 5
    assert languages.count("python") >= 4
    assert languages.count("text") >= 5
