"""``pinprick report`` from the shell."""

import json
from pathlib import Path

import pytest

from cli.conftest import Run

MODEL = ("--model", "cli_test_models:colours")


def test_a_report_of_an_attack_has_its_pictures(run: Run, picture: Path, tmp_path: Path) -> None:
    run("attack", picture, *MODEL, "--attack", "greedy", "--figures", "0", "--trace", "--quiet")
    shell = run("report", "pinprick-out")
    assert (shell.status, shell.out) == (0, "report.html\n")
    assert shell.err.startswith("report.html: 1 images, 0.1 MB")
    text = (tmp_path / "report.html").read_text()
    assert "greedy fooled 1 of 1" in text
    assert 'id="sheet-0"' in text


def test_a_report_of_explanations_has_their_groups(run: Run, picture: Path, tmp_path: Path) -> None:
    run("explain", picture, *MODEL, "--layer", "none", "--figures", "0", "--quiet")
    shell = run("report", "pinprick-out/explanation.json", "--json", "--out", "why.html", "--quiet")
    document = json.loads(shell.out)
    assert (document["images"], document["pictured"]) == (1, 1)
    assert document["bytes"] == (tmp_path / "why.html").stat().st_size
    assert '"obscuring":' in (tmp_path / "why.html").read_text()
    assert shell.err == ""


def test_a_comparison_has_a_line_per_attack(run: Run, picture: Path, tmp_path: Path) -> None:
    run("compare", picture, *MODEL, "--attacks", "greedy,jsma", "--figures", "0", "--quiet")
    assert run("report", "pinprick-out").status == 0
    text = (tmp_path / "report.html").read_text()
    assert "None" not in text.partition("<script")[0]
    assert "jsma" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name results: a store"),
        (("gone",), "there is no file or folder gone"),
        ((".",), "holds no results; give a store"),
        (("cli_test_models.py",), "cli_test_models.py holds no results"),
        (("pinprick-out", "--images", "-1"), "--images"),
        (("pinprick-out", "--out", "."), "is a folder; give --out a file"),
        (("pinprick-out", "--out", "gone/report.html"), "cannot write gone/report.html"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    run: Run, picture: Path, arguments: tuple[str, ...], message: str
) -> None:
    if "gone/report.html" in arguments:
        run("attack", picture, *MODEL, "--attack", "greedy", "--figures", "0", "--quiet")
    shell = run("report", *arguments, "--quiet")
    assert shell.status == 2
    assert message in shell.err
    assert shell.err.count("\n") == 1
