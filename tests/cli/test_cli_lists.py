"""The commands without files: the table of attacks, the checks and the self-test."""

import json
from pathlib import Path

import pytest

from cli.conftest import Run
from pinprick import ATTACKS, build
from pinprick.contract.check_attack import Verdict
from pinprick.settings import meanings_of, ranges_of


def test_attacks_lists_every_card(run: Run) -> None:
    lines = run("attacks").out.splitlines()
    for name, cls in ATTACKS.items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert cls.card.title in line
        assert cls.card.paper in line
    assert "; corner_search quick, sigma; " in lines[-2]  # the presets


def test_attacks_as_json_can_be_built_again(run: Run) -> None:
    cards = json.loads(run("attacks", "--json").out)
    assert [card["name"] for card in cards] == list(ATTACKS)
    for card in cards:
        assert build(card["options"]) == ATTACKS[card["name"]]()
        for preset, settings in card["presets"].items():
            named = build({"name": card["name"], "preset": preset})
            assert named == build({**card["options"], **settings})


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_has_a_page_with_every_setting_and_difference(name: str, run: Run) -> None:
    shell = run("attacks", name)
    assert shell.status == 0
    words = " ".join(shell.out.split())
    for key, meaning in meanings_of(ATTACKS[name]).items():
        assert key in words
        assert meaning[:30] in words
        assert ranges_of(ATTACKS[name])[key] in words
    for sentence in ATTACKS[name].card.differences:
        assert f"- {sentence}" in shell.out
    document = json.loads(run("attacks", name, "--json").out)
    assert document["differences"] == list(ATTACKS[name].card.differences)
    assert set(document["meanings"]) == set(document["options"]) - {"name"}


def test_an_unknown_attack_has_no_page_but_near_names(run: Run) -> None:
    shell = run("attacks", "sparse_sr")
    assert shell.status == 2
    assert "sparse_rs" in shell.err


def test_bibtex_has_each_paper_once(run: Run) -> None:
    every = run("attacks", "--bibtex").out
    assert every.count("Towards Evaluating the Robustness of Neural Networks") == 1
    assert run("attacks", "cw_l0", "--bibtex").out.startswith("@inproceedings{carlini2017,\n")


def test_check_says_when_there_is_nothing_to_put_right(run: Run, picture: Path) -> None:
    shell = run("check", picture, "--model", "cli_test_models:colours")
    assert shell.status == 0
    assert shell.out == "colours: nothing to fix, checked on 1 image\n"


def test_check_refuses_photographs_that_show_none_of_the_classes(run: Run) -> None:
    shell = run("check", "--model", "pinprick:cifar10_resnet20")
    assert shell.status == 2
    assert "airplane, automobile, bird" in shell.err
    assert "--data NAME" in shell.err
    assert run("check", "--model", "pinprick:fashion_cnn", "--data", "fashion_sample").status == 0


def test_check_names_what_is_doubtful(run: Run, picture: Path) -> None:
    shell = run("check", picture, "--model", "cli_test_models:soft")
    assert shell.status == 2
    assert "softmax_outputs: " in shell.out
    flags = json.loads(run("check", picture, "--model", "cli_test_models:soft", "--json").out)
    assert "softmax_outputs" in [flag["name"] for flag in flags["flags"]]


def test_check_looks_at_accuracy_where_labels_are_given(run: Run, picture: Path) -> None:
    arguments = ("check", picture, "--model", "cli_test_models:colours", "--label")
    assert run(*arguments, "red").status == 0
    assert "low_accuracy" in run(*arguments, "blue").out


def test_a_selftest_that_passes_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The selftest itself is run in ``test_selftest.py``."""
    asked: list[tuple[str, bool]] = []

    def pass_all(device: str, *, quick: bool) -> list[Verdict]:
        asked.append((device, quick))
        return [Verdict("greedy", True, "finds the fewest")]

    monkeypatch.setattr("pinprick.selftest.run_selftest", pass_all)
    shell = run("selftest", "--device", "cpu")
    assert (shell.status, asked) == (0, [("cpu", False)])
    assert "greedy" in shell.out
    assert "passed on cpu" in shell.out.splitlines()[-1]
    assert "left out" not in shell.out
    shell = run("selftest", "--device", "cpu", "--quick")
    assert (shell.status, asked[-1]) == (0, ("cpu", True))
    assert shell.out.startswith("left out by --quick, as they are slow: auto, brendel_bethge, ")
    document = json.loads(run("selftest", "--device", "cpu", "--quick", "--json").out)
    assert "brendel_bethge" in document["left_out"]


def test_a_quick_selftest_of_one_attack_is_refused(run: Run) -> None:
    shell = run("selftest", "--attack", "greedy", "--quick")
    assert shell.status == 2
    assert "--quick leaves out attacks" in shell.err


def test_a_selftest_that_fails_is_a_bug(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = [Verdict("sums", True, "exact"), Verdict("pgd", False, "leaves the box")]
    monkeypatch.setattr("pinprick.selftest.run_selftest", lambda device, quick: verdicts)
    shell = run("selftest", "--device", "cpu")
    assert shell.status == 1
    assert "FAILED    leaves the box" in shell.out
    assert "1 of 2 passed on cpu" in shell.out
    document = json.loads(run("selftest", "--device", "cpu", "--json").out)
    assert document["verdicts"][1] == {"name": "pgd", "passed": False, "detail": "leaves the box"}


@pytest.mark.parametrize("command", [("attacks",), ("attacks", "pinprick"), ("models",)])
def test_piped_lists_are_at_most_100_columns_wide(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.delenv("COLUMNS")
    lines = run(*command).out.splitlines()
    tables = [line for line in lines if line.startswith(" ") or "─" in line or line.endswith(" ")]
    assert tables
    assert max(map(len, tables)) <= 100
    if command == ("attacks",):
        assert any(line.split()[:1] == ["wifgsm_printed"] for line in lines), "names are whole"
