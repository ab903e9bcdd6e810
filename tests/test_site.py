"""The site of the pages: it is whole, and opens from a folder without a network."""

import json
import re
from pathlib import Path

import pytest
from browser import OpenPage

from build_site import (
    ROOT,
    BrokenSite,
    build_site,
    copy_pages,
    nav_faults,
    place_in_site,
    read_nav,
    run_zensical,
    with_links,
    with_whole_numbers,
)
from notebook_page import notebook_page

pytestmark = pytest.mark.plain
OUTSIDE = re.compile(
    r"<(?:script|img|iframe)[^>]* src=\"?(?:https?:|/)|<link[^>]* href=\"?(?:https?:|/)"
    r"|@import|url\([\"']?https?:"
)


def test_every_page_has_one_entry_in_nav(tmp_path: Path) -> None:
    assert nav_faults(read_nav(), copy_pages(tmp_path)) == []


def test_pages_and_entries_that_miss_each_other_are_named() -> None:
    nav = ["a.md", {"Part": ["b.md", {"Title": "c.md"}, "b.md"]}]
    assert nav_faults(nav, ["a.md", "b.md", "d.md"]) == [
        "d.md is in no entry of nav in zensical.toml",
        "nav in zensical.toml has c.md, which is not there",
        "nav in zensical.toml has b.md twice",
    ]


def test_the_home_page_lists_all_pages_but_parts(tmp_path: Path) -> None:
    home = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"\]\(([^)]+\.md)\)", with_links(home, "docs/README.md"))
    parts = re.compile(r"README\.md|methods/(?!README).*|results/paper_.*")
    pages = [page for page in copy_pages(tmp_path) if not parts.fullmatch(page)]
    assert sorted(listed) == sorted(pages)


@pytest.mark.parametrize(
    ("source", "text", "changed"),
    [
        ("README.md", "[m](docs/methods/README.md#x)", "[m](../methods/README.md#x)"),
        ("README.md", "![a](docs/images/attack.png)", "![a](../images/attack.png)"),
        ("docs/README.md", "[c](../CONTRIBUTING.md)", "[c](project/contributing.md)"),
        (
            "docs/README.md",
            "[n]: notebooks/your_own_model.ipynb",
            "[n]: notebooks/your_own_model.md",
        ),
        ("README.md", "[docs/README.md](docs/README.md)", "[docs/README.md](../README.md)"),
        ("docs/README.md", "the [licence](../LICENSE).", "the licence."),
        (
            "docs/README.md",
            "`[a](b.md)` [p](https://x.org/y.md)",
            "`[a](b.md)` [p](https://x.org/y.md)",
        ),
        ("docs/README.md", "```\n[a](b.md)\n```", "```\n[a](b.md)\n```"),
    ],
)
def test_links_lead_to_where_things_are_in_the_site(source: str, text: str, changed: str) -> None:
    assert with_links(text, source) == changed


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[a](gone.md)", "links to gone.md, which is not there"),
        ("![a](images/gone.png)", "links to images/gone.png, which is not there"),
        ("[a][gone]", "uses \\[gone\\], which it does not define"),
        ("[a]: ../LICENSE", "defines \\[a\\] as ../LICENSE, not in the site"),
    ],
)
def test_a_link_to_nowhere_stops_the_build(text: str, fault: str) -> None:
    with pytest.raises(BrokenSite, match=fault):
        with_links(text, "docs/README.md")


def test_a_notebook_is_text_code_and_what_it_showed() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# A title\n", "Text."]},
        {
            "cell_type": "code",
            "source": ["print(1)\n", "2"],
            "outputs": [
                {"output_type": "stream", "text": ["1\n"]},
                {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
                {"output_type": "display_data", "data": {"text/html": ["<b>3</b>"]}},
            ],
        },
    ]
    assert notebook_page(json.dumps({"cells": cells})) == (
        "# A title\nText.\n\n```python\nprint(1)\n2\n```\n\n```text\n1\n```\n\n```text\n2\n```\n\n"
        "<div class='shown'><b>3</b></div>\n"
    )


def test_numbers_in_tables_stay_on_one_line() -> None:
    text = "5 % of 6\n| 5 % [1, 2] | 3 + 4 of 7 |\n"
    assert with_whole_numbers(text) == "5 % of 6\n| 5\xa0% [1,\xa02] | 3\xa0+\xa04 of 7 |\n"


def test_code_of_docs_is_not_in_the_site() -> None:
    assert place_in_site("docs/make.py") is None
    assert place_in_site("src/pinprick/run.py") is None


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("zensical", reason="Zensical is not installed: extra docs")
    folder = tmp_path_factory.mktemp("site")
    build_site(folder)
    return folder


@pytest.mark.slow
def test_the_site_has_all_pages_and_asks_for_nothing_outside(site: Path) -> None:
    names = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert {"index.html", "methods/index.html", "project/changelog.html"} <= names
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert [path.name for path in files if OUTSIDE.search(path.read_text("utf-8"))] == []


@pytest.mark.slow
def test_a_broken_anchor_stops_the_build(tmp_path: Path) -> None:
    pytest.importorskip("zensical", reason="Zensical is not installed: extra docs")
    (tmp_path / "zensical.toml").write_text('[project]\nsite_name = "A site"\n')
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "index.md"
    page.write_text("# A page\n\n[here](#a-page)\n")
    run_zensical(tmp_path)
    page.write_text("# A page\n\n[here](#another)\n")
    with pytest.raises(BrokenSite, match="anchor does not exist"):
        run_zensical(tmp_path)


@pytest.mark.browser
def test_search_finds_a_page_from_a_folder(site: Path, open_page: OpenPage) -> None:
    page = open_page()
    page.goto((site / "index.html").as_uri())
    page.get_by_role("button", name="Search").click()
    page.get_by_role("combobox").fill("sigma zero")
    page.get_by_role("option").filter(has_text="Methodsσ-zero").first.click()
    page.wait_for_url("**/methods/sigma_zero.html*")


@pytest.mark.browser
def test_the_site_is_light_or_dark_as_the_system_is(site: Path, open_page: OpenPage) -> None:
    schemes = []
    for colours in ("light", "dark"):
        page = open_page(color_scheme=colours)
        page.goto((site / "reference" / "glossary.html").as_uri())
        schemes.append(page.evaluate("document.body.dataset.mdColorScheme"))
    assert schemes == ["default", "slate"]


@pytest.mark.browser
def test_a_narrow_screen_scrolls_tables_and_not_the_page(site: Path, open_page: OpenPage) -> None:
    page = open_page(360)
    for name in ("methods/index", "results/leaderboard", "notebooks/your_own_model"):
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
