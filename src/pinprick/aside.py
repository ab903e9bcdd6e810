"""Files that are never half: written aside and renamed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
