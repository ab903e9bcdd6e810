"""Chromium for tests marked ``browser``: pages that may ask this machine alone, without errors.

``conftest.py`` has the fixtures ``chromium`` and ``open_page`` for all files.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

Page = Any  # of Playwright
OpenPage = Callable[..., Page]

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_HERE = re.compile(r"(https?://(127\.0\.0\.1|localhost)[:/]|file://|data:|blob:|about:)")


def _errors(line: Any) -> list[str]:
    """The error in a line of the console; a request that was refused in words is none."""
    return [line.text] if line.type == "error" and "status of 400" not in line.text else []


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser of the system, driven by Playwright."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[OpenPage]:
    """Opens pages; requests that leave this machine and errors on a console fail the test."""
    contexts, wrong = [], []

    def open_one(width: int = 1280, height: int = 900, **options: Any) -> Page:
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)

        def ask(route: Any) -> None:
            if _HERE.match(route.request.url):
                route.continue_()
            else:
                wrong.append(f"asked for {route.request.url}")
                route.abort()

        context.route("**/*", ask)
        context.on("console", lambda line: wrong.extend(_errors(line)))
        context.on("weberror", lambda error: wrong.append(str(error.error)))
        page = context.new_page()
        page.set_default_timeout(20_000)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not wrong, wrong
