"""What a job writes: the folder, and documents as JSON files that are rewritten as they grow."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pinprick.files import open_folder, write_text

_REST = 20  # times as long as a write takes, the next one waits


def open_out(folder: Path) -> None:
    """Make the folder, and check before the work starts that files can be written into it."""
    open_folder(folder, advice="choose another with --out")


def as_json(document: Any) -> str:
    """The document as text; numbers must be finite."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def write_json(document: dict[str, Any], path: Path) -> None:
    write_text(path, as_json(document) + "\n")


class IncrementalJson:
    """A JSON file that grows with its document.

    It is rewritten as often as that takes less than 5 % of the time, and at the end. A run that is
    stopped loses nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._make: Callable[[], dict[str, Any]] | None = None
        self._next = 0.0

    def __enter__(self) -> "IncrementalJson":
        return self

    def __exit__(self, *_: object) -> None:
        self._save()

    def update(self, make: Callable[[], dict[str, Any]]) -> None:
        """Replace the document by what ``make`` returns; it is called when the file is written."""
        self._make = make
        start = time.monotonic()
        if start >= self._next:
            self._save()
            self._next = start + _REST * (time.monotonic() - start)

    @property
    def document(self) -> dict[str, Any]:
        """The latest document."""
        assert self._make is not None, "nothing has been written"
        return self._make()

    def _save(self) -> None:
        if self._make is not None:
            write_json(self._make(), self._path)
