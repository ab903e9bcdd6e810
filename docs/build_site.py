"""Builds the site of the pages; ``scripts/docs site`` runs it.

Zensical builds it from a copy of docs/. In the copy, pages from the top of the repository stand
beside the others, notebooks are pages, and links lead to where things are in the site. A link to
a file of the repository that is not in the site becomes its text. Anything broken stops the build.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from notebook_page import notebook_page

ROOT = Path(__file__).parent.parent
FROM_ELSEWHERE = {
    "README.md": "project/readme.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "results/README.md": "project/rows.md",
}
SHOWN = (".md", ".ipynb", ".png", ".json", ".html", ".css", ".js")
COLOURS = re.compile(r"\x1b\[[\d;]*m")
INSIDE_NUMBER = re.compile(r"(?<=\d) (?=[%+])|(?<=\+) (?=\d)|(?<=\d,) (?=\d)")
LINK = re.compile(
    r"(?P<code>^(?P<fence>```|~~~).*?^(?P=fence)[ ]*$|`[^`\n]*`)"
    r"|!?\[(?P<text>[^\[\]]*)\]\((?P<target>[^)\s]+)\)"
    r"|\[[^\[\]]*\]\[(?P<used>[^\]]+)\]"
    r"|^\[(?P<key>[^\]]+)\]: +(?P<defined>\S+)",
    re.DOTALL | re.MULTILINE,
)


class BrokenSite(Exception):
    """The pages do not make a whole site."""


def build_site(out: Path) -> None:
    """Build the site of the repository's pages into a folder, which is made anew."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder)
        shutil.copyfile(ROOT / "zensical.toml", stage / "zensical.toml")
        (stage / "src").symlink_to(ROOT / "src")  # for docstrings
        pages = copy_pages(stage / "docs")
        faults = nav_faults(read_nav(), pages)
        if faults:
            raise BrokenSite("\n".join(faults))
        run_zensical(stage)
        shutil.rmtree(out, ignore_errors=True)
        for_servers = shutil.ignore_patterns("404.html", "sitemap.xml")
        shutil.copytree(stage / "site", out, ignore=for_servers)


def run_zensical(folder: Path) -> None:
    """Build the site of a folder with zensical.toml; a broken link or anchor is an error."""
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        said = COLOURS.sub("", done.stdout + done.stderr)
        raise BrokenSite(said.partition("Traceback")[0].strip() or said)


def copy_pages(folder: Path) -> list[str]:
    """Copy everything that the site shows, as Zensical takes it; gives the names of the pages."""
    inside = (path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.*"))
    places = {source: place_in_site(source) for source in [*inside, *FROM_ELSEWHERE]}
    kept = {source: place for source, place in places.items() if place is not None}
    for source, place in kept.items():
        copy = folder / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not place.endswith(".md"):
            shutil.copyfile(ROOT / source, copy)
            continue
        text = (ROOT / source).read_text(encoding="utf-8")
        if source.endswith(".ipynb"):
            text = notebook_page(text)
        copy.write_text(with_whole_numbers(with_links(text, source)), encoding="utf-8")
    return [place for place in kept.values() if place.endswith(".md")]


def place_in_site(source: str) -> str | None:
    """Where a file of the repository is in the copy; None if the site does not have it."""
    if source in FROM_ELSEWHERE:
        return FROM_ELSEWHERE[source]
    path = PurePosixPath(source)
    if path.parts[0] != "docs" or path.suffix not in SHOWN:
        return None
    inside = path.relative_to("docs")
    return str(inside.with_suffix(".md") if path.suffix == ".ipynb" else inside)


def with_links(text: str, source: str) -> str:
    """The page with links that hold in the copy."""
    keys = {found["key"] for found in LINK.finditer(text)}

    def changed(found: re.Match[str]) -> str:
        if found["used"] and found["used"] not in keys:
            raise BrokenSite(f"{source} uses [{found['used']}], which it does not define")
        target = found["target"] or found["defined"]
        if not target or ":" in target or target.startswith("#"):
            return found[0]
        path, mark, anchor = target.partition("#")
        wanted = os.path.normpath(PurePosixPath(source).parent / path)
        if not (ROOT / wanted).exists():
            raise BrokenSite(f"{source} links to {target}, which is not there")
        place = place_in_site(wanted)
        if place is None and found["key"]:
            raise BrokenSite(f"{source} defines [{found['key']}] as {target}, not in the site")
        if place is None:
            return found["text"]
        here = PurePosixPath(place_in_site(source) or "").parent
        before, _, after = found[0].rpartition(target)
        return f"{before}{os.path.relpath(place, here)}{mark}{anchor}{after}"

    return LINK.sub(changed, text)


def with_whole_numbers(text: str) -> str:
    """The page with tables whose lines do not break inside ``5 %``, ``[1, 2]`` and ``3 + 4``."""
    lines = text.splitlines(keepends=True)
    return "".join(
        INSIDE_NUMBER.sub("\N{NO-BREAK SPACE}", line) if line.startswith("|") else line
        for line in lines
    )


def read_nav() -> list[Any]:
    """The entries of nav in zensical.toml."""
    nav: list[Any] = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    return nav


def nav_faults(nav: Iterable[Any], pages: Iterable[str]) -> list[str]:
    """Pages without an entry, entries without a page, and pages with two entries."""
    listed, there = list(_entries(nav)), set(pages)
    return [
        *(f"{page} is in no entry of nav in zensical.toml" for page in sorted(there - {*listed})),
        *(
            f"nav in zensical.toml has {page}, which is not there"
            for page in listed
            if page not in there
        ),
        *(
            f"nav in zensical.toml has {page} twice"
            for page in sorted({*listed})
            if listed.count(page) > 1
        ),
    ]


def _entries(nav: Iterable[Any]) -> Iterator[str]:
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        else:
            for inner in entry.values():
                yield from _entries([inner] if isinstance(inner, str) else inner)


if __name__ == "__main__":
    try:
        build_site(ROOT / "site")
    except BrokenSite as broken:
        sys.exit(str(broken))
    print("built site/: open site/index.html")
