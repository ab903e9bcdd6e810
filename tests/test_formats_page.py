"""The page on file formats lists every field of what is written."""

from pathlib import Path

import pytest

from format_reference import CLASSES, fields_on, fill_formats, makers, own_meanings
from pinprick.bench.plan_file import _READERS

pytestmark = pytest.mark.plain
PAGE = (Path(__file__).parent.parent / "docs" / "reference" / "file_formats.md").read_text(
    encoding="utf-8"
)


def test_the_page_is_what_the_classes_say() -> None:
    assert fill_formats(PAGE) == PAGE, "out of step; run scripts/docs formats"
    assert sorted(fields_on(PAGE)) == sorted(makers())


@pytest.mark.parametrize("name", CLASSES)
def test_every_field_has_a_meaning(name: str) -> None:
    meanings = own_meanings(CLASSES[name])
    assert meanings
    assert [field for field, meaning in meanings.items() if not meaning] == []


def test_every_key_of_a_plan_is_listed() -> None:
    section = PAGE.partition("\n## Plans\n")[2].partition("\n## ")[0]
    assert [key for key in _READERS if f"\n| `{key}` | " not in section] == []
