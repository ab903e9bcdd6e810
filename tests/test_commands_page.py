"""The page on commands has what the program says of each."""

from pathlib import Path

import pytest

from command_reference import all_commands, commands_on, fill_commands

pytestmark = pytest.mark.plain
PAGE = (Path(__file__).parent.parent / "docs" / "reference" / "commands.md").read_text(
    encoding="utf-8"
)


def test_the_page_is_what_the_program_says() -> None:
    assert fill_commands(PAGE) == PAGE, "out of step; run scripts/docs commands"


def test_every_command_has_its_section() -> None:
    assert sorted(commands_on(PAGE)) == sorted(all_commands())
    for name in all_commands():
        assert f"\n## {name}\n\n<!-- command: {name} -->\n" in PAGE


def test_an_option_has_its_value_its_default_and_its_meaning() -> None:
    assert "- `--seed NUMBER`: The same seed gives the same images. Default: `0`.\n" in PAGE
    assert "- `--draws COUNT`: With `--smoothed`: draws per picture. Default: `1000`.\n" in PAGE
    assert "- `--json`: Print JSON, for programs.\n" in PAGE
    assert "- `--unit pixels|elements`: What is counted. Default: `pixels`.\n" in PAGE
    assert "\npinprick prove RESULT [OPTIONS]\n" in PAGE
    assert "\npinprick attack [IMAGES...] [OPTIONS]\n" in PAGE


def test_a_page_that_somebody_changed_is_seen() -> None:
    changed = PAGE.replace("The same seed gives the same images.", "Any number.", 1)
    assert changed != PAGE
    assert fill_commands(changed) == PAGE
