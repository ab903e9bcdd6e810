"""The folder that datasets are kept in, unless another is given."""

import os
import sys
from pathlib import Path


def data_root(given: str | Path | None = None) -> Path:
    """The folder given, the one that PINPRICK_DATA names, or one in the user's cache."""
    if given is not None:
        return Path(given).expanduser()
    if named := os.environ.get("PINPRICK_DATA"):
        return Path(named).expanduser()
    return _cache() / "pinprick" / "data"


def _cache() -> Path:
    """Where this platform keeps what can be fetched again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
