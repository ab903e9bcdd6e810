"""The reference for Python names every part of a result and every public name."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

import pinprick
from pinprick import AttackResult
from pinprick.report.docs_reference import python_reference

PAGE = (Path(__file__).parent.parent / "docs" / "reference" / "result.md").read_text(
    encoding="utf-8"
)
LINES = dict(re.findall(r"^(?:\| |- )`(\w+)[^`]*`(?:: | \| )(.*)$", PAGE, re.MULTILINE))


def test_the_reference_is_what_the_docstrings_say() -> None:
    _, _, rest = PAGE.partition("<!-- reference -->\n")
    made, _, _ = rest.partition("\n<!-- end of reference -->")
    assert made == python_reference(pinprick._HOME), "out of step; run scripts/docs reference"


@pytest.mark.parametrize(
    "names",
    [
        [one.name for one in fields(AttackResult)],
        [name for name in dir(AttackResult) if not name.startswith("_") and name != "SHARED"],
        list(inspect.signature(pinprick.run_attack).parameters),
        pinprick.__all__,
    ],
    ids=["fields", "properties and methods", "arguments of run_attack", "public names"],
)
def test_every_name_is_there_with_its_meaning(names: list[str]) -> None:
    assert [name for name in names if not LINES.get(name, "").strip()] == []
