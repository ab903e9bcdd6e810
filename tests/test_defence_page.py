"""The example of docs/how_to/evaluate_a_defence.md: its commands run and print what it shows."""

import re
import sys
from pathlib import Path

import pytest

from pinprick.cli import main

PAGE = (Path(__file__).parent.parent / "docs" / "how_to" / "evaluate_a_defence.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)\n```$", PAGE, re.DOTALL | re.MULTILINE)
(FILE,) = [text for language, text in BLOCKS if language]
COMMANDS = [text for _, text in BLOCKS if text.startswith("pinprick ")]
SHOWN = [text for language, text in BLOCKS if not language and text not in COMMANDS]


@pytest.mark.slow  # half a minute of attacks
def test_the_commands_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "defence.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for command in COMMANDS:
        with pytest.raises(SystemExit) as stop:
            main(command.replace("\\\n", " ").split()[1:])
        expected = 2 if command.startswith("pinprick check") else 0
        assert (stop.value.code or 0) == expected, command
    lines = capsys.readouterr().out.splitlines()
    assert len(SHOWN) == 4
    assert [text for text in SHOWN if text not in lines] == []
    certified = [int(line.split()[-5]) for line in lines if "certified" in line and "test-" in line]
    assert certified == [5] * 7
    assert (tmp_path / "report.html").stat().st_size > 0
