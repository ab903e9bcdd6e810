"""Published cards: none contradicts itself, and commands are made from them."""

import re
import runpy
import shlex
import tomllib
from pathlib import Path

import pytest

from generators.model_cards import command_of
from pinprick.train.plan import build_plan, describe_plan, difference, what_decides
from pinprick.zoo import shipped
from pinprick.zoo.card import ModelCard, read_card
from pinprick.zoo.facts import check_facts

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "cards"
STORED = ROOT / "models"
PUBLISHED = {
    path.stem: read_card(path.read_text(), path.name) for path in sorted(FOLDER.glob("*.json"))
}
CARDS = {**PUBLISHED, **{f"pinprick:{name}": shipped.card(name) for name in shipped.names()}}


@pytest.mark.parametrize("name", CARDS)
def test_the_command_of_a_card_is_that_of_its_training(name: str) -> None:
    words = shlex.split(command_of(CARDS[name].facts))
    assert words[:2] == ["pinprick", "train"]
    stored = {"float16": ["--half"], "int8": ["--store", "int8"]}
    ending = stored.get(CARDS[name].facts.get("weights", ""), [])
    words = words[2 : len(words) - len(ending)]
    pairs = list(zip(words[::2], words[1::2], strict=True))
    given = {flag: value for flag, value in pairs if flag != "--option"}
    assert given.keys() <= {"--data", "--net", "--recipe", "--seed"}
    plan = build_plan(
        data=given["--data"],
        net=given["--net"],
        recipe=given.get("--recipe", "standard"),
        options=dict(value.split("=", 1) for flag, value in pairs if flag == "--option"),
        seed=int(given.get("--seed", 0)),
    )
    there = what_decides(CARDS[name].facts["training"])
    assert difference(there, what_decides(describe_plan(plan))) == ""


@pytest.mark.parametrize("name", CARDS)
def test_no_card_contradicts_itself(name: str) -> None:
    check_facts(CARDS[name].facts)


@pytest.mark.parametrize("name", shipped.names())
def test_the_presets_are_those_of_the_shipped_models(name: str) -> None:
    there = shipped.card(name).facts["training"]
    recipe = there["recipe"]["name"]
    plan = build_plan(data=there["data"], net=there["net"], recipe=recipe)
    assert difference(what_decides(there), what_decides(describe_plan(plan))) == ""


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_card_names_no_place_on_a_disk(name: str) -> None:
    assert not re.search(r'"(/|~|[A-Z]:)', (FOLDER / f"{name}.json").read_text())


def test_models_beside_the_package_have_the_published_cards_and_are_small() -> None:
    for path in STORED.glob("*/card.json"):
        card = read_card(path.read_text(), str(path))
        assert card == PUBLISHED[path.parent.name]
        assert card.facts["weights"] == "int8"
    assert sum(file.stat().st_size for file in STORED.rglob("*.*")) < 25e6
    assert all(file.stat().st_size < 15e6 for file in STORED.rglob("*.*"))
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]
    assert not any("models" in one for one in targets["sdist"]["include"])
    assert targets["wheel"]["packages"] == ["src/pinprick"]


def test_an_exam_that_is_taken_again_keeps_what_is_known_of_the_training() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "exam.py"))
    card: ModelCard = CARDS["pinprick:mnist_cnn"]
    results = {"accuracy": 0.5, "pgd": {**card.facts["pgd"], "accuracy": 0.25}}
    exam = {**card.facts["training"]["exam"], "l0_queries": 7}
    facts = script["examined"](card, results, exam, "cpu").facts
    assert (facts["accuracy"], facts["pgd"]["accuracy"]) == (0.5, 0.25)
    assert facts["training"] == {**card.facts["training"], "exam": exam}
    assert facts["examined"]["device"] == "cpu"
    kept = ("seconds", "device", "versions", "trained_on", "seed", "epochs")
    assert all(facts[key] == card.facts[key] for key in kept)
