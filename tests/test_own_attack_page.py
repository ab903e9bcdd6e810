"""The example of docs/how_to/add_an_attack.md, in Python and in the shell, as it stands there."""

import re
import sys
from pathlib import Path

import pytest

from pinprick import build
from pinprick.cli import main
from pinprick.contract.check_attack import find_breaches

PAGE = (Path(__file__).parent.parent / "docs" / "how_to" / "add_an_attack.md").read_text()
FILE, USE = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^pinprick (.*)$", PAGE.replace("\\\n", " "), re.MULTILINE)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one_shot.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in ("one_shot", "one_shot.py"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_the_example_keeps_the_contract_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(USE, {})
    checked, result = capsys.readouterr().out.splitlines()
    assert f"# prints: {checked}\n" in USE
    assert result.startswith("<AttackResult: one_shot:OneShot on pinprick:fashion_cnn, 4 images")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.split()[0])
def test_the_example_runs_in_the_shell(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(command.split())
    assert not stop.value.code, capsys.readouterr().err


def test_the_breach_and_the_clauses_are_those_of_the_page() -> None:
    Path("wrong_shot.py").write_text(FILE.replace('kind="budget"', 'kind="minimal"'))
    found = find_breaches(build("wrong_shot.py:OneShot"))
    lines = [f"{clause}: {one}" for clause, some in found.items() for one in some]
    assert len(lines) == 5
    assert f"```\n{lines[0]}\n```" in PAGE
    assert re.findall(r"^\| (\w[^|]*?) \|", PAGE, re.MULTILINE) == ["clause", *found]
