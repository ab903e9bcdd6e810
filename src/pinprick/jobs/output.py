"""What a job writes: the folder, and files that are rewritten as they grow."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pinprick.files import open_folder, write_text
from pinprick.model import Classifier
from pinprick.result import AttackResult, join
from pinprick.result_file import save_result

_REST = 20  # times as long as a write takes, the next one waits


class Sparing:
    """Lets work be done as often as it takes less than 5 % of the time."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, work: Callable[[], None]) -> None:
        start = time.monotonic()
        if start >= self._next:
            work()
            self._next = start + _REST * (time.monotonic() - start)


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

    It is rewritten as often as that takes less than 5 % of the time, and at the end.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._make: Callable[[], dict[str, Any]] | None = None
        self._sparing = Sparing()

    def __enter__(self) -> "IncrementalJson":
        return self

    def __exit__(self, *_: object) -> None:
        self._save()

    def update(self, make: Callable[[], dict[str, Any]]) -> None:
        """Replace the document by what ``make`` returns; it is called when the file is written."""
        self._make = make
        self._sparing(self._save)

    @property
    def is_empty(self) -> bool:
        """Whether there is no document yet."""
        return self._make is None

    @property
    def document(self) -> dict[str, Any]:
        """The latest document."""
        assert self._make is not None, "nothing has been written"
        return self._make()

    def _save(self) -> None:
        if self._make is not None:
            write_json(self._make(), self._path)


class IncrementalResult:
    """A file of results that grows with each batch; with ``path`` None nothing is written.

    It is rewritten as often as that takes less than 5 % of the time, and at the end. Its result
    says whether it is ``complete``, and what loads its model, if ``model`` is a name.
    """

    def __init__(self, path: Path | None, model: str | Classifier) -> None:
        self._path, self._model_from = path, model if isinstance(model, str) else ""
        self._results: list[AttackResult] = []
        self._complete = False
        self._sparing = Sparing()

    def __enter__(self) -> "IncrementalResult":
        return self

    def __exit__(self, *_: object) -> None:
        self._save()

    def add(self, result: AttackResult) -> None:
        if self._path is not None:
            self._results.append(result)
            self._sparing(self._save)

    def complete(self) -> None:
        """Say that no batch is missing; the file is written at the end."""
        self._complete = True

    def _save(self) -> None:
        if self._path is not None and self._results:
            whole = replace(
                join(self._results), complete=self._complete, model_from=self._model_from
            )
            save_result(whole, self._path)
