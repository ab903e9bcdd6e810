"""A progress bar on stderr, or in the output of a notebook's cell."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

_PAUSE = 0.2  # seconds between two drawings in a notebook

Advance = Callable[[int], None]  # called with the number of images that were done


@contextmanager
def progress_bar(title: str, total: int | None) -> Iterator[Advance]:
    """Give a function that advances the bar; ``total`` None if it is unknown."""
    bar = _in_notebook(title, total) if in_notebook() else _on_stderr(title, total)
    with bar as advance:
        yield advance


def in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook, whose output is HTML."""
    ipython = sys.modules.get("IPython")  # it is there already if so
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def _on_stderr(title: str, total: int | None) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)


@contextmanager
def _in_notebook(title: str, total: int | None) -> Iterator[Advance]:
    """A bar that needs no widgets: one piece of HTML that is replaced as the work goes on."""
    display: Any = sys.modules["IPython"].display
    start = drawn = time.monotonic()
    done = 0
    shown = display.display(display.HTML(_html(title, 0, total, 0.0)), display_id=True)

    def draw() -> None:
        seconds = time.monotonic() - start
        shown.update(display.HTML(_html(title, done, total, seconds)))

    def advance(count: int) -> None:
        nonlocal done, drawn
        done += count
        if time.monotonic() - drawn >= _PAUSE:
            draw()
            drawn = time.monotonic()

    try:
        yield advance
    finally:
        draw()


def _html(title: str, done: int, total: int | None, seconds: float) -> str:
    share = "" if total is None else f' value="{done}" max="{max(1, total)}"'
    count = f"{done:,}" if total is None else f"{done:,} of {total:,}"
    bar = f"<progress{share}></progress>"
    return f"<label>{escape(title)} {bar} {count} images, {seconds:.1f} s</label>"
