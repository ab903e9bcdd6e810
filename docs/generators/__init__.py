"""What stands between the marks of measured values, page by page.

Each file makes the tables and values of some pages from rows under results/, or from the cards of
models. ``PAGES`` of a file holds them: by page and name, a function that gives the text. The marks
are those of ``pinprick.report.docs_measured``. A file without ``PAGES`` is shared by others.
"""

import pkgutil
from importlib import import_module
from pathlib import Path

from pinprick.report.docs_measured import Blocks, fill_measured

ROOT = Path(__file__).parents[2]


def all_pages() -> dict[str, Blocks]:
    """By the path of a page, its blocks by name."""
    names = [found.name for found in pkgutil.iter_modules(__path__)]
    modules = [import_module(f"{__name__}.{name}") for name in names]
    pages: dict[str, Blocks] = {}
    for module in modules:
        for page, blocks in getattr(module, "PAGES", {}).items():
            pages[page] = {**pages.get(page, {}), **blocks}
    return pages


def fill_page(page: str, blocks: Blocks) -> None:
    """Write the page with its measured values made again."""
    path = ROOT / page
    path.write_text(fill_measured(path.read_text(encoding="utf-8"), blocks), encoding="utf-8")
