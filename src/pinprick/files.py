"""Files that are never half: written aside and renamed."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pinprick.errors import BadInput


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """Where to write; renamed at the end, so that there is the whole file or the one before."""
    place = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        place.touch()
        mode = place.stat().st_mode  # as the user has it; safetensors makes files for him alone
        yield place
        place.chmod(mode)
        place.replace(path)
    finally:
        place.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file, or the list of files in a folder, is on the disk."""
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Wait until the list of files is on the disk, where the system can say so of a folder."""
    with suppress(OSError):
        sync(folder)


def sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}") from None
