"""Attacks as plain data and back, and what is said of data that does not fit."""

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinprick import ATTACKS, Attack, BadInput, Card, Problem, UnknownName, build, describe
from pinprick.attacks import IFGSM, Greedy, find_attack
from pinprick.attacks.build import build_quick
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class Everything(Attack):
    """An attack with a setting of every kind, other attacks among them."""

    card: ClassVar[Card] = Card(
        name="everything",
        title="Everything",
        norm="l0",
        unit="pixels",
        kind="minimal",
        access="gradients",
        targeted=False,
        paper="",
    )
    presets: ClassVar[dict[str, dict[str, Any]]] = {"quick": {"steps": 1, "eps": 0.5}}

    eps: float = 0.1
    steps: int = 3
    keep: bool = False
    size: float | None = None
    loss: Literal["margin", "ce"] = "margin"
    limit: int | str = 4
    k: int | Literal["smallest"] = 1
    note: str = ""
    sides: tuple[float, ...] = (1.0, 2.0)
    start: Attack = field(default_factory=IFGSM)
    rest: tuple[Attack, ...] = ()

    def __call__(self, problem: Problem) -> Images:
        return problem.images


@pytest.fixture(autouse=True)
def _one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ATTACKS, "everything", Everything)


def test_a_name_is_enough() -> None:
    assert build("ifgsm") == IFGSM()
    assert build({"name": "greedy", "max_pixels": 7}) == Greedy(max_pixels=7)


def test_a_preset_stands_for_settings_and_gives_way_to_those_beside_it() -> None:
    assert build({"name": "everything", "preset": "quick"}) == Everything(steps=1, eps=0.5)
    both = build({"name": "everything", "preset": "quick", "eps": "1/8"})
    assert both == Everything(steps=1, eps=1 / 8)
    assert build(describe(both)) == both
    assert build_quick("everything") == Everything(steps=1, eps=0.5)
    assert build_quick("ifgsm") == IFGSM()


def test_a_preset_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownName, match="no preset of everything is called 'quik'; did you mean"):
        build({"name": "everything", "preset": "quik"})
    with pytest.raises(UnknownName, match="no option of ifgsm is called 'preset'"):
        build({"name": "ifgsm", "preset": "quick"})


def test_describing_spells_out_every_default() -> None:
    assert describe(IFGSM(eps=0.5)) == {
        "name": "ifgsm",
        "eps": 0.5,
        "steps": 10,
        "step_size": 1 / 255,
    }


def test_attacks_held_by_an_attack_nest() -> None:
    attack = Everything(start=Greedy(max_pixels=2), rest=(IFGSM(), Everything(note="inner")))
    data = json.loads(json.dumps(describe(attack)))
    assert data["start"] == {"name": "greedy", "max_pixels": 2}
    assert data["rest"][1]["rest"] == []
    assert build(data) == attack
    assert build({"name": "everything", "start": "greedy"}) == Everything(start=Greedy())
    assert build({"name": "everything", "start": Greedy()}) == Everything(start=Greedy())


def test_an_attack_held_by_an_attack_may_come_as_text() -> None:
    text = '{"name": "greedy", "max_pixels": 2}'
    assert build({"name": "everything", "start": text}) == Everything(start=Greedy(max_pixels=2))
    with pytest.raises(BadInput, match="start of everything is not JSON"):
        build({"name": "everything", "start": '{"name": greedy}'})


@given(
    eps=st.floats(1e-3, 1),
    steps=st.integers(1, 10**6),
    size=st.none() | st.floats(0.1, 2),
    loss=st.sampled_from(["margin", "ce"]),
    limit=st.integers() | st.sampled_from(["all", "half"]),
    note=st.text(),
    sides=st.lists(st.floats(-3, 3)),
)
def test_there_and_back(**settings: Any) -> None:
    attack = Everything(**{**settings, "sides": tuple(settings["sides"])})
    assert build(json.loads(json.dumps(describe(attack)))) == attack


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("eps", "8/255", 8 / 255),
        ("eps", "1e-3", 0.001),
        ("eps", 1, 1.0),
        ("steps", "20", 20),
        ("steps", 20.0, 20),
        ("keep", "true", True),
        ("keep", "No", False),
        ("size", "none", None),
        ("size", "1/4", 0.25),
        ("loss", "ce", "ce"),
        ("limit", "5", 5),
        ("limit", "all", "all"),
        ("note", "none", "none"),
        ("sides", ["1/2", 3], (0.5, 3.0)),
    ],
)
def test_values_may_come_as_text(option: str, text: Any, value: Any) -> None:
    read = getattr(build({"name": "everything", option: text}), option)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("option", "value", "line"),
    [
        ("eps", "wide", "eps of everything must be float, got 'wide'"),
        ("eps", "1/0", "eps of everything must be float, got '1/0'"),
        ("eps", True, "eps of everything must be float, got True"),
        ("eps", "nan", "eps of everything must be float, got 'nan'"),
        ("eps", None, "eps of everything must be float, got None"),
        ("steps", 2.5, "steps of everything must be int, got 2.5"),
        ("steps", "inf", "steps of everything must be int, got 'inf'"),
        ("keep", "perhaps", "keep of everything must be bool, got 'perhaps'"),
        ("size", "large", "size of everything must be float, got 'large'"),
        ("loss", "hinge", "loss of everything must be one of 'margin', 'ce', got 'hinge'"),
        ("k", "few", "k of everything must be int or 'smallest', got 'few'"),
        ("sides", ["a"], "sides of everything must be float, got 'a'"),
        ("start", 3, "start of everything must be an attack, by name or as a mapping, got 3"),
        ("start", {"eps": 1}, "an attack is given by name"),
    ],
)
def test_a_value_of_the_wrong_kind_gets_a_line(option: str, value: Any, line: str) -> None:
    with pytest.raises(BadInput) as caught:
        build({"name": "everything", option: value})
    assert str(caught.value).startswith(line)


def test_an_unknown_attack_offers_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        build("igfsm")
    line = str(caught.value)
    assert line.startswith("no attack is called 'igfsm'; did you mean ")
    assert "ifgsm" in line
    with pytest.raises(UnknownName, match="no attack is called 'zzz'; known: "):
        find_attack("zzz")


def test_an_unknown_option_offers_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        build({"name": "ifgsm", "stepsize": 0.1})
    line = str(caught.value)
    assert line.startswith("no option of ifgsm is called 'stepsize'; did you mean step_size")


def test_an_unknown_option_of_a_nested_attack_is_found_too() -> None:
    with pytest.raises(UnknownName, match="no option of greedy is called 'max_pixel'"):
        build({"name": "everything", "start": {"name": "greedy", "max_pixel": 3}})


def test_settings_out_of_their_range_are_refused() -> None:
    with pytest.raises(BadInput, match="ifgsm needs"):
        build({"name": "ifgsm", "eps": 0})
    with pytest.raises(BadInput, match="greedy needs max_pixels >= 1, got 0"):
        build({"name": "greedy", "max_pixels": 0})


@pytest.mark.parametrize("spec", [{}, {"eps": 1}, {"name": 3}])
def test_an_attack_without_a_name_gets_a_line(spec: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="an attack is given by name"):
        build(spec)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("auto", {"budgets": 5}, "budgets of auto must be tuple, got 5"),
        ("fmn", {"steps": 2.5}, "steps of fmn must be int, got 2.5"),
        ("fmn", {"steps": 100.0}, "steps of fmn must be int, got 100.0"),
        ("fmn", {"step_size": "8/255"}, "step_size of fmn must be float, got '8/255'"),
        ("sigma_zero", {"stop_at": "x"}, "stop_at of sigma_zero must be int, got 'x'"),
    ],
)
def test_what_is_no_number_gets_a_line_in_python_too(
    name: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput) as caught:
        ATTACKS[name](**settings)
    assert str(caught.value) == message
