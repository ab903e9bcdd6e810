"""Cards that are published: the command beside each trains that model, and the table is true."""

import re
import shlex
from pathlib import Path

import pytest

from pinprick.train.plan import build_plan, describe_plan, difference, what_decides
from pinprick.zoo import shipped
from pinprick.zoo.card import read_card

FOLDER = Path(__file__).parents[2] / "docs" / "cards"
PUBLISHED = {
    path.stem: read_card(path.read_text(), path.name) for path in sorted(FOLDER.glob("*.json"))
}


def row_of(name: str) -> list[str]:
    """The cells of the one row of the table that links to the card."""
    lines = (FOLDER / "README.md").read_text().splitlines()
    (line,) = [line for line in lines if f"({name}.json)" in line]
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_command_beside_a_card_is_that_of_its_training(name: str) -> None:
    words = shlex.split(row_of(name)[1].strip("`"))
    assert words[:2] == ["pinprick", "train"]
    given = dict(zip(words[2::2], words[3::2], strict=True))
    assert given.keys() <= {"--data", "--net", "--recipe"}
    recipe = given.get("--recipe", "standard")
    plan = build_plan(data=given["--data"], net=given["--net"], recipe=recipe)
    there = what_decides(PUBLISHED[name].facts["training"])
    assert difference(there, what_decides(describe_plan(plan))) == ""


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_table_says_what_the_card_says(name: str) -> None:
    facts = PUBLISHED[name].facts
    few = facts["l0_elements"]["accuracy"]
    assert row_of(name)[2:8] == [
        f"{facts['accuracy']:.2%}".replace("%", " %"),
        f"{facts['pgd']['accuracy']:.2%}".replace("%", " %"),
        f"{few['10']:.1%}".replace("%", " %"),
        f"{few['24']:.1%}".replace("%", " %"),
        f"{facts['seconds']}",
        facts["device"],
    ]


@pytest.mark.parametrize("name", shipped.names())
def test_the_presets_are_those_of_the_shipped_models(name: str) -> None:
    there = shipped.card(name).facts["training"]
    recipe = there["recipe"]["name"]
    plan = build_plan(data=there["data"], net=there["net"], recipe=recipe)
    assert difference(what_decides(there), what_decides(describe_plan(plan))) == ""


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_card_names_no_place_on_a_disk(name: str) -> None:
    assert not re.search(r'"(/|~|[A-Z]:)', (FOLDER / f"{name}.json").read_text())
