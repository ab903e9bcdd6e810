"""Files that are written whole or not at all, and one message where the disk refuses."""

import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from safetensors import SafetensorError

from pinprick.errors import BadInput, one_line


@contextmanager
def atomic_write(path: Path, *, flush: bool = False) -> Iterator[Path]:
    """Give a temporary file to write to, and rename it to ``path`` at the end.

    Readers find the new file or the one before it, never half of one.

    Args:
        path: The file to write.
        flush: Wait until the disk has the content before the file is renamed.
    """
    token = f"{os.getpid()}-{secrets.token_hex(4)}"  # machines that share a folder share numbers
    temporary = path.with_name(f".{path.name}.{token}.tmp")
    with writing(path):
        try:
            with usual_permissions(temporary):
                yield temporary
            if flush:
                sync(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files of ``atomic_write`` that a killed process left beside ``path``."""
    for file in path.parent.glob(f".{path.name}.*.tmp"):
        file.unlink(missing_ok=True)


@contextmanager
def usual_permissions(path: Path) -> Iterator[None]:
    """Give a new file the usual permissions; safetensors lets only the owner read its files."""
    path.touch()
    mode = path.stat().st_mode
    yield
    path.chmod(mode)


def write_text(path: Path, text: str) -> None:
    """Write a whole text file in UTF-8."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def open_folder(folder: Path, *, advice: str = "") -> None:
    """Make the folder if it is missing, and check that files can be written into it.

    Args:
        folder: The folder.
        advice: What the user can do if not, for the message.
    """
    with writing(folder, advice=advice):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


@contextmanager
def writing(path: Path, *, advice: str = "") -> Iterator[None]:
    """Turn errors of the disk into ``BadInput``: "cannot write PATH: reason; advice"."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        to = "to " if path.is_dir() else ""
        way_out = f"; {advice}" if advice else ""
        raise BadInput(f"cannot write {to}{path}: {_reason(error)}{way_out}") from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of the disk into ``BadInput``: "PATH cannot be read: reason"."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"{str(path)[:200]} cannot be read: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or one_line(error)


def sha256(path: Path) -> str:
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Wait until a file, or the list of files in a folder, is on the disk."""
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Wait until the list of files is on the disk, on systems that can sync folders."""
    with suppress(OSError):
        sync(folder)
