"""The output folder: found to be writable before the work starts, and files in it never half."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from pinprick.errors import BadInput


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
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        aside.write_text(as_json(document) + "\n", encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        aside.unlink(missing_ok=True)


def as_json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
