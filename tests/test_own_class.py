"""An attack in the user's own code, by the name of its class or of its file."""

import json
import sys
from pathlib import Path

import pytest

from pinprick import Attack, BadInput, UnknownName, build, describe, find_attack

CODE = """
from dataclasses import dataclass
from typing import ClassVar

from pinprick import Attack, Card, setting

ready = 3

def card(name):
    return Card(name=name, title=name, norm="l0", unit="pixels", kind="minimal", access="scores",
                targeted=True, paper="")

@dataclass(frozen=True, kw_only=True)
class Walk(Attack):
    card: ClassVar[Card] = card("walk")
    presets: ClassVar = {"quick": {"steps": 2}}
    steps: int = setting(10, least=1)

    def __call__(self, problem):
        return problem.images

walk = Walk()

@dataclass(frozen=True, kw_only=True)
class Abstract(Attack):
    card: ClassVar[Card] = card("abstract")

@dataclass(frozen=True, kw_only=True)
class WithoutCard(Attack):
    def __call__(self, problem):
        return problem.images

class Plain(Attack):
    card: ClassVar[Card] = card("plain")

    def __call__(self, problem):
        return problem.images

@dataclass(frozen=True, kw_only=True)
class Demanding(Walk):
    k: int

class Stranger:
    pass
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    for name in ("own_test_attacks", "own_test_broken", "deep/mine.py"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "own_test_attacks.py").write_text(CODE)
    (tmp_path / "own_test_broken.py").write_text("import a_module_that_is_not_there")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "mine.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("module", ["own_test_attacks", "deep/mine.py"])
def test_a_class_goes_by_its_module_or_its_file_and_comes_back_from_plain_data(module: str) -> None:
    attack = build({"name": f"{module}:Walk", "steps": "3"})
    assert isinstance(attack, Attack)
    assert describe(attack) == {"name": f"{module}:Walk", "steps": 3}
    assert build(json.loads(json.dumps(describe(attack)))) == attack
    quick = build({"name": f"{module}:Walk", "preset": "quick"})
    assert quick.steps == 2  # type: ignore[attr-defined]


def test_a_file_of_the_same_path_in_another_folder_is_another_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = find_attack("deep/mine.py:Walk")
    assert find_attack("deep/mine.py:Walk") is here
    (tmp_path / "other" / "deep").mkdir(parents=True)
    (tmp_path / "other" / "deep" / "mine.py").write_text(CODE)
    monkeypatch.chdir(tmp_path / "other")
    assert find_attack("deep/mine.py:Walk") is not here


def test_settings_of_an_own_attack_are_checked_like_any_other() -> None:
    with pytest.raises(BadInput, match="walk needs steps >= 1, got 0"):
        build({"name": "own_test_attacks:Walk", "steps": 0})
    with pytest.raises(UnknownName, match="no option of walk is called 'stesp'; did you mean ste"):
        build({"name": "own_test_attacks:Walk", "stesp": 1})


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("nowhere:Walk", "there is no module 'nowhere' to take an attack from; it must be inst"),
        ("ifgsn:quick", "there is no module 'ifgsn' to take an attack from; did you mean ifgsm?"),
        ("ifgsm:quick", "no attack is called 'ifgsm:quick'; did you mean ifgsm"),
        ("gone.py:Walk", "there is no file gone.py to take an attack from"),
        (":Walk", "'' is not the name of a module"),
        ("own_test_attacks:Wlak", "no class of own_test_attacks is called 'Wlak'; did you mean W"),
        ("own_test_attacks:ready", "own_test_attacks:ready is a int; give the name of a class"),
        ("own_test_attacks:walk", "own_test_attacks:walk is an object of the class Walk; give th"),
        ("own_test_attacks:Stranger", "own_test_attacks:Stranger is not an attack: its class mus"),
        ("own_test_attacks:Abstract", "own_test_attacks:Abstract is abstract: it has no __call__"),
        ("own_test_attacks:WithoutCard", "own_test_attacks:WithoutCard has no card: write card:"),
        ("own_test_attacks:Plain", "own_test_attacks:Plain is no frozen dataclass: write @datacl"),
        ("own_test_attacks:Demanding", "own_test_attacks:Demanding has a setting without a defau"),
    ],
)
def test_what_cannot_be_used_gets_one_line(name: str, line: str) -> None:
    with pytest.raises((BadInput, UnknownName)) as caught:
        build(name)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


def test_an_error_inside_the_module_keeps_its_traceback(tmp_path: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        build("own_test_broken:Walk")
    (tmp_path / "half.py").write_text("first = 1\nraise ZeroDivisionError")
    for _ in range(2):  # a module that failed is not taken for a loaded one
        with pytest.raises(ZeroDivisionError):
            build("half.py:Walk")
