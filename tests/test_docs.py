"""The code in the pages runs as it stands, and every attack has its page.

Blocks marked ``python`` are run in order, those of one page in one namespace, where ``net``,
``images`` and ``labels`` are there already. A block after ``<!-- not run: why -->`` is left out.
"""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from generators import all_pages
from pinprick import ATTACKS
from pinprick.report.docs_measured import fill_measured, measured_names, written_by_hand

pytestmark = pytest.mark.plain
ROOT = Path(__file__).parent.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "results" / "README.md",
]
BLOCK = re.compile(
    r"(?P<skip><!-- not run: [^>]+ -->\s*)?^```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)


def blocks(text: str) -> list[tuple[int, str]]:
    """The line that each block to be run begins at, and its code."""
    return [
        (text.count("\n", 0, found.start("code")) + 1, found["code"])
        for found in BLOCK.finditer(text)
        if not found["skip"]
    ]


ALONE = ("ten_minutes.md",)  # pages that test_start_page.py runs, with their commands
SLOW = ("README.md", "metrics.md", "robust_model.md")  # pages whose code takes seconds
WITH_CODE = [
    pytest.param(page, marks=pytest.mark.slow if page.name in SLOW else ())
    for page in PAGES
    if page.exists() and page.name not in ALONE and blocks(page.read_text())
]


def small_network() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 7 * 7, 10)
        )
    return net.eval()


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    net = small_network()
    images = torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        labels = net(images).argmax(dim=1)
    names = {"__name__": "page", "net": net, "images": images, "labels": labels}
    for line, code in blocks(page.read_text()):
        padded = "\n" * (line - 1) + code  # so that a traceback shows the line of the page
        exec(compile(padded, str(page), "exec"), names)


def test_blocks_are_found_and_left_out_where_they_say_so() -> None:
    text = (
        "a\n\n```python\nx = 1\n```\n\n<!-- not run: needs weights -->\n```python\ny = 2\n```\n"
        "```\nz\n```\n\n```python\nw = 3\n```\n"
    )
    assert blocks(text) == [(4, "x = 1\n"), (16, "w = 3\n")]


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_every_attack_has_its_page(name: str) -> None:
    page = ROOT / "docs" / "methods" / f"{name}.md"
    assert page.exists(), f"docs/methods/{name}.md is missing"
    text = page.read_text()
    assert text.startswith("# ")
    assert ATTACKS[name].card.title in text.splitlines()[0]


def test_every_page_of_a_method_is_of_an_attack_in_the_table() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "methods").glob("*.md")} - {"index", "README"}
    assert pages <= set(ATTACKS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


MEASURED = all_pages()


@pytest.mark.parametrize("page", MEASURED)
def test_measured_values_of_a_page_are_those_of_its_rows(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert fill_measured(text, MEASURED[page]) == text, "out of step; run scripts/docs measured"
    assert set(measured_names(text)) == set(MEASURED[page]), "made for the page, and not on it"


def test_a_measured_value_that_somebody_changed_is_seen() -> None:
    page = "docs/reference/checks.md"
    text = (ROOT / page).read_text(encoding="utf-8")
    changed = text.replace("| 384 of 384 |", "| 383 of 384 |", 1)
    assert changed != text
    assert fill_measured(changed, MEASURED[page]) == text


def test_every_page_with_marks_of_measured_values_is_made_from_rows() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "results").rglob("*.md")]
    marked = [page for page in pages if measured_names(page.read_text(encoding="utf-8"))]
    assert {str(page.relative_to(ROOT)) for page in marked} == set(MEASURED)


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *sorted((ROOT / "docs" / "results").glob("*.md"))],
    ids=lambda p: p.name,
)
def test_no_percentage_or_decimal_of_a_page_of_results_is_written_by_hand(page: Path) -> None:
    assert written_by_hand(page.read_text(encoding="utf-8")) == []


def test_every_folder_of_results_is_listed_with_its_command_and_its_page() -> None:
    text = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    folders = sorted(path.name for path in (ROOT / "results").iterdir() if path.is_dir())
    assert re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", text, re.MULTILINE) == folders
    assert re.findall(r"^# (\w+).*\n(?:pinprick|python|\./)", text, re.MULTILINE) == folders
    for key in re.findall(r"\[([^]]+)\](?!\()", text[: text.index("```")]):
        assert f"\n[{key}]: " in text


def test_links_by_reference_lead_somewhere() -> None:
    for page in PAGES:
        text = page.read_text()
        for target in re.findall(r"^\[[^]]+\]: (?!https?:)([^#\s]+)", text, re.MULTILINE):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_pages_name_files_that_exist() -> None:
    files = {
        path.name
        for folder in ("src", "benchmarks", "docs")
        for path in (ROOT / folder).rglob("*.py")
    }
    for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "ARCHITECTURE.md"]:
        for name in re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8")):
            there = (ROOT / "src" / "pinprick" / name).exists() or (ROOT / name).exists()
            assert there if "/" in name else name in files, f"{page.name} names {name}"


@pytest.mark.parametrize("page", ["README.md", "docs/how_to/own_model.md"])
def test_a_targeted_attack_is_shown_where_newcomers_look(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "least_likely(model(images), labels)" in text
    assert "targets=" in text
