"""The page on the API names everything that users may import."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pinprick

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
LISTED = re.findall(
    r"^::: pinprick\.(\S+)$", (DOCS / "reference" / "api.md").read_text("utf-8"), re.MULTILINE
)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def code_of_pages() -> Iterator[str]:
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        yield from BLOCK.findall(page.read_text("utf-8"))
    for path in DOCS.rglob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        yield from ("".join(one["source"]) for one in cells if one["cell_type"] == "code")


def imported(code: str) -> set[str]:
    """What code imports from modules of the package, as ``bench.store.Store``."""
    return {
        f"{node.module}.{name.name}".removeprefix("pinprick.")
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pinprick.")
        for name in node.names
    }


def test_every_public_name_is_on_the_page_once() -> None:
    assert sorted(name for name in LISTED if "." not in name) == sorted(pinprick.__all__)
    assert len(LISTED) == len(set(LISTED))


def test_what_pages_import_from_modules_is_on_the_page() -> None:
    names = {name for code in code_of_pages() for name in imported(code)}
    assert "bench.store.Store" in names
    homes = {f"{home}.{name}" for name, home in pinprick._HOME.items()}
    attacks = {f"attacks.{attack.__name__}" for attack in pinprick.ATTACKS.values()}
    assert names - homes - attacks - set(LISTED) == set()
