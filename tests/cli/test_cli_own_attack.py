"""An attack of the user's own in every command that attacks."""

import json
import sys
from pathlib import Path

import pytest

from cli.conftest import Run

OWN = """
from dataclasses import dataclass
from typing import ClassVar

import torch

from pinprick import Attack, Card, setting

@dataclass(frozen=True, kw_only=True)
class Half(Attack):
    card: ClassVar[Card] = Card(
        name="half", title="Half", norm="linf", kind="budget", access="scores", targeted=False,
        paper="",
    )
    presets: ClassVar = {"green": {"channel": 1}}
    channel: int = setting(2, least=0, most=2)

    def __call__(self, problem):
        adv = problem.images.clone()
        adv[:, self.channel] = 1
        return adv
"""


@pytest.fixture(autouse=True)
def _own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cli_test_own", "own.py"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "cli_test_own.py").write_text(OWN)
    (tmp_path / "own.py").write_text(OWN)


MODEL = ("--model", "cli_test_models:colours", "--device", "cpu")


@pytest.mark.parametrize("module", ["cli_test_own", "own.py"])
def test_attack_takes_it_with_its_settings(
    run: Run, picture: Path, tmp_path: Path, module: str
) -> None:
    name = f"{module}:Half"
    done = run("attack", picture, *MODEL, "--attack", name, "--option", "channel=1", "--figures=0")
    assert done.status == 0, done.err
    assert "green" in done.out
    document = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
    assert document["attack"] == {"name": name, "channel": 1}


def test_compare_takes_it_with_presets_and_options(run: Run, picture: Path, tmp_path: Path) -> None:
    names = "greedy,cli_test_own:Half,cli_test_own:Half:green,own.py:Half"
    options = ("--option", "own.py:Half.channel=0", "--option", "greedy.max_pixels=30")
    done = run("compare", picture, *MODEL, "--attacks", names, *options)
    assert done.status == 0, done.err
    document = json.loads((tmp_path / "pinprick-out" / "compare.json").read_text())
    assert document["attacks"] == [
        {"name": "greedy", "max_pixels": 30},
        {"name": "cli_test_own:Half", "channel": 2},
        {"name": "cli_test_own:Half", "channel": 1},
        {"name": "own.py:Half", "channel": 0},
    ]


def test_compare_keeps_two_classes_apart_whose_cards_have_the_same_name(
    run: Run, picture: Path, tmp_path: Path
) -> None:
    names = "cli_test_own:Half,own.py:Half"
    done = run("compare", picture, *MODEL, "--attacks", names, "--figures", "0")
    assert done.status == 0, done.err
    summary = json.loads((tmp_path / "pinprick-out" / "summary.json").read_text())
    rows = [(row["attack"], row["images"]) for row in summary["attacks"]]
    assert rows == [("cli_test_own:Half", 1), ("own.py:Half", 1)]


def test_explain_leaves_a_dense_one_unpolished(run: Run, picture: Path, tmp_path: Path) -> None:
    done = run(
        "explain", picture, *MODEL, "--attack", "cli_test_own:Half", "--layer=none", "--figures=0"
    )
    assert done.status == 0, done.err
    document = json.loads((tmp_path / "pinprick-out" / "explanation.json").read_text())
    assert "polished" not in document["attack"]
    assert "polishing" not in done.out


def test_attacks_shows_it(run: Run) -> None:
    done = run("attacks", "cli_test_own:Half")
    assert done.status == 0, done.err
    assert done.out.startswith("Half (half, revision 1)")
    assert "channel" in done.out


def test_a_wrong_name_gets_one_line(run: Run, picture: Path) -> None:
    done = run("attack", picture, *MODEL, "--attack", "cli_test_own:Haff")
    assert done.status == 2
    assert done.err.strip().endswith(
        "no class of cli_test_own is called 'Haff'; did you mean Half?"
    )


def test_selftest_holds_it_to_the_contract(run: Run) -> None:
    done = run("selftest", "--attack", "cli_test_own:Half", "--option", "channel=0")
    assert done.status == 2
    assert "It never asked the model." in done.out
    assert "of 15 passed by half" in done.out
    sound = run("selftest", "--attack", "ifgsm", "--option", "steps=1", "--json")
    assert sound.status == 0
    document = json.loads(sound.out)
    assert document["attack"]["steps"] == 1
    assert all(verdict["passed"] for verdict in document["verdicts"])
    lone = run("selftest", "--option", "steps=1")
    assert lone.status == 2
    assert "--option belongs to the attack that --attack names" in lone.err
