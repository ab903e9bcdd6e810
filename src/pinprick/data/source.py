"""What is known about a named set before it is read: its facts, and how to get and check it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pinprick.data.dataset import Dataset
from pinprick.data.fetch import Progress
from pinprick.data.pictures import Unreadable
from pinprick.errors import BadInput, first_few


@dataclass(frozen=True, kw_only=True)
class Source:
    """A set by name.

    Attributes:
        name: Its name on the command line.
        title: Its name in print.
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


def incomplete(what: str, root: Path, faults: Sequence[Unreadable]) -> BadInput:
    """The error for a set, or a split of it, with missing or damaged files."""
    reasons = first_few([f"{fault.path}: {fault.reason}" for fault in faults], separator="; ")
    name = what.partition("/")[0]
    return BadInput(
        f"{what} is not complete in {root} ({reasons}); "
        f"get it with: pinprick data get {name} --root {root}"
    )
