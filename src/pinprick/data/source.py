"""What is known of a set before it is there: its facts, and how it is read, fetched and checked."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pinprick.data.dataset import Dataset
from pinprick.data.fetch import Progress
from pinprick.data.pictures import Unreadable


@dataclass(frozen=True, kw_only=True)
class Source:
    """A set by name.

    Attributes:
        name: What it is called on the command line.
        title: What it is called in print.
        counts: How many images each split has.
        classes: How many classes there are.
        shape: Channels, height and width; None where pictures have sizes of their own.
        place: The folder of a root that it is kept in; empty if it comes with the package.
        load: Reads a split from a root.
        get: Brings what is missing into a root.
        faults: Files in a root that are missing or damaged, with the reason.
    """

    name: str
    title: str
    counts: dict[str, int]
    classes: int
    shape: tuple[int, int, int] | None
    place: str
    load: Callable[[Path, str], Dataset]
    get: Callable[[Path, Progress | None], None]
    faults: Callable[[Path], list[Unreadable]]


def listed(faults: list[Unreadable]) -> str:
    """The first faults in one line."""
    named = "; ".join(f"{fault.path}: {fault.reason}" for fault in faults[:3])
    return f"{named}; and {len(faults) - 3} more" if len(faults) > 3 else named


# The folder that datasets are kept in, unless another is given.


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
