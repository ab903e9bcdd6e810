"""The page on file formats lists every field of what is written."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from format_reference import CLASSES, fields_on, fill_formats, makers, own_meanings
from pinprick.bench.plan_file import _READERS
from pinprick.cli import main

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


def section_of(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("attack", "--attack", "fgsm", "--trace"), "result.json"),
        (("compare", "--attacks", "greedy,fgsm"), "compare.json"),
        (("explain", "--attack", "greedy", "--layer", "none"), "explanation.json"),
        (("compare", "--attacks", "greedy,fgsm"), "summary.json"),
    ],
)
def test_every_key_of_a_document_is_on_the_page(
    command: Sequence[str], name: str, tmp_path: Path
) -> None:
    images = ["--data", "fashion_sample[0:1]", "--model", "pinprick:fashion_cnn", "--threads", "1"]
    with pytest.raises(SystemExit):
        main([*command, *images, "--figures", "0", "--quiet", "--out", str(tmp_path)])
    document = json.loads((tmp_path / name).read_text())
    named = set(re.findall(r"`(\w+)`", section_of(name) + section_of("result.json")))
    keys = {*document, *(key for image in document.get("images", ()) for key in image)}
    assert keys - named == set()


def test_every_key_of_a_plan_is_listed() -> None:
    section = section_of("Plans")
    assert [key for key in _READERS if f"\n| `{key}` | " not in section] == []
