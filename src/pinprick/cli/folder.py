"""The output folder: found to be writable before the work starts, and files in it never half."""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pinprick.errors import BadInput
from pinprick.files import atomic_write

_SHARE = 20  # a growing document may take a twentieth of the time


def open_folder(folder: Path) -> None:
    """Make the folder if it is not there, and see that files can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadInput(
            f"cannot write to the folder {folder}: {error.strerror or error}; "
            "choose another with --out"
        ) from None


def write_json(document: dict[str, Any], path: Path) -> None:
    """Write aside and rename, so that there is either the whole file or the one before."""
    try:
        with atomic_write(path) as place:
            place.write_text(as_json(document) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror or error}") from None


class Diary:
    """A document that grows, on the disk as often as that costs little, and always at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._make: Callable[[], dict[str, Any]] | None = None
        self._next = 0.0

    def __enter__(self) -> "Diary":
        return self

    def __exit__(self, *_: object) -> None:
        self._save()

    def write(self, make: Callable[[], dict[str, Any]]) -> None:
        """Keep what ``make`` gives; it is called when it is written, and once at the end."""
        self._make = make
        start = time.monotonic()
        if start >= self._next:
            self._save()
            self._next = start + _SHARE * (time.monotonic() - start)

    @property
    def document(self) -> dict[str, Any]:
        """The latest."""
        assert self._make is not None, "nothing has been written"
        return self._make()

    def _save(self) -> None:
        if self._make is not None:
            write_json(self._make(), self._path)


def as_json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
