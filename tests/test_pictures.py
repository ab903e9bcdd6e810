"""Every picture of the repository is made by docs/make.py, in full colours, and is on a page."""

import re
from pathlib import Path

import pytest
from PIL import Image

from make import IMAGES, MAKERS, PICTURES

pytestmark = pytest.mark.plain
ROOT = Path(__file__).parent.parent
MADE = sorted(name for names in PICTURES.values() for name in names)
FOLDERS = ("docs", "src", "results", "plans", "benchmarks", "tests")


def test_every_picture_has_a_maker() -> None:
    assert set(PICTURES) <= set(MAKERS)
    kinds = ("png", "jpg", "jpeg", "gif", "webp")
    found = {path for folder in FOLDERS for k in kinds for path in (ROOT / folder).rglob(f"*.{k}")}
    assert found == {IMAGES / name for name in MADE}


@pytest.mark.parametrize("name", MADE)
def test_a_picture_has_full_colours(name: str) -> None:
    with Image.open(IMAGES / name) as picture:
        assert picture.mode in ("RGB", "RGBA"), "a palette dithers, or shows bands"


def test_every_picture_is_on_a_page() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert set(re.findall(r"!\[[^\]]+\]\([\w./]*images/([\w.]+)\)", text)) == set(MADE)
