"""What a report is made from: stores, folders of results, and single files, told by content."""

from collections.abc import Sequence
from pathlib import Path

from pinprick.errors import BadInput
from pinprick.pages.from_documents import NAMES, read_document
from pinprick.pages.report_parts import Source
from pinprick.result_file import is_result


def read_sources(paths: Sequence[Path]) -> list[Source]:
    """Everything that the paths name; ``BadInput`` where a path holds no results.

    A path is a store, a folder with result.json, compare.json or explanation.json, a folder with
    such folders per seed, one of these files, or a file that ``attack --save`` wrote.
    """
    return [source for path in paths for source in _read(path)]


def _read(path: Path) -> list[Source]:
    if not path.exists():
        raise BadInput(f"there is no file or folder {path}")
    if path.is_file():
        return [_read_file(path)]
    if (path / "cells").is_dir():
        from pinprick.pages.from_store import open_store

        return [open_store(path)]
    folders = [path, *sorted(path.glob("seed-*"))]
    files = [folder / name for folder in folders for name in NAMES if (folder / name).is_file()]
    if not files:
        raise BadInput(
            f"{path} holds no results; give a store, or a folder with one of {', '.join(NAMES)}"
        )
    return [read_document(file) for file in files]


def _read_file(path: Path) -> Source:
    if path.suffix == ".json":
        return read_document(path)
    if is_result(path):
        from pinprick.pages.from_saved_result import read_saved_result

        return read_saved_result(path)
    raise BadInput(
        f"{path} holds no results; give {', '.join(NAMES)}, or a file that attack --save wrote"
    )
