"""Is a set whole? Files, checksums, images by class, and a hash of all its contents."""

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pinprick.data import load_data
from pinprick.data.dataset import Dataset, NoSplit
from pinprick.data.pictures import Unreadable, read_picture
from pinprick.data.registry import SOURCES, find_source
from pinprick.data.source import data_root
from pinprick.errors import BadInput

Watch = Callable[[int, int], None]  # files looked at, and all of them


@dataclass(frozen=True)
class Part:
    """A split as it was found.

    Attributes:
        source: The set and its split.
        images: How many there are.
        by_class: How many of each class.
        contents: SHA-256 of all images and labels in order; empty if one cannot be read.
    """

    source: str
    images: int
    by_class: dict[str, int]
    contents: str


@dataclass(frozen=True)
class Report:
    """What a set is worth: its splits, and what is wrong with its files."""

    name: str
    parts: tuple[Part, ...]
    faults: tuple[Unreadable, ...]


def check_data(name: str, *, root: str | Path | None = None, watch: Watch | None = None) -> Report:
    """Look at every file of the set called ``name``; arguments as for ``load_data``."""
    where = data_root(root)
    known = None if ":" in name else find_source(name)
    faults = [] if known is None else known.faults(where)
    damaged = len(faults) > 0
    parts, missing, refused = [], [], []
    classes = set()
    for split in ("train", "test") if known is None else known.counts:
        try:
            data = load_data(name, root=where, split=split)
        except NoSplit as error:  # where there is a split, another may be missing
            missing.append(str(error))
            continue
        except BadInput as error:
            refused.append(str(error))
            continue
        if known is not None and known.shape is not None and len(data) != known.counts[split]:
            reason = f"{split} has {len(data)} images and not {known.counts[split]}"
            faults.append(Unreadable(where / known.place, reason))
        contents, found = fingerprint(data, watch)
        faults += found
        parts.append(Part(data.source, len(data), by_class(data), contents))
        classes.add(data.classes)
    if not parts and not faults:
        raise BadInput([*missing, *refused][-1])
    if not damaged:  # files that are say the same
        faults += [Unreadable(Path(name), reason) for reason in refused]
    if len(classes) > 1:
        faults.append(Unreadable(Path(name), "train and test name other classes"))
    return Report(name, tuple(parts), tuple(faults))


def by_class(data: Dataset) -> dict[str, int]:
    """How many images each class has; numbers tell apart classes of the same name.

    Where classes have no names, those without an image are unknown.
    """
    if not data.classes:
        found, counts = data.labels.unique(return_counts=True)
        names = map(data.class_name, found.tolist())
        return dict(zip(names, counts.tolist(), strict=True))
    repeated = {name for name, times in Counter(data.classes).items() if times > 1}
    counts = data.labels.bincount(minlength=len(data.classes))
    return {
        f"{name} ({number})" if name in repeated else name: count
        for number, (name, count) in enumerate(zip(data.classes, counts.tolist(), strict=True))
    }


def fingerprint(data: Dataset, watch: Watch | None = None) -> tuple[str, list[Unreadable]]:
    """SHA-256 of all images and labels in their order, and the files that are damaged.

    Where images are files, the same picture under two labels is a fault too.
    """
    if data.pixels is not None:
        total = hashlib.sha256(repr(tuple(data.pixels.shape)).encode())
        for pixels in data.pixels.split(4096):
            total.update(pixels.contiguous().numpy().tobytes())
        total.update(data.labels.numpy().astype("<i8").tobytes())
        return total.hexdigest(), []
    total, faults = hashlib.sha256(), []
    seen: dict[bytes, tuple[Path, int]] = {}
    for done, (path, label) in enumerate(zip(data.files, data.labels.tolist(), strict=True), 1):
        try:
            read_picture(path)
            digest = hashlib.sha256(path.read_bytes()).digest()
        except (BadInput, OSError) as error:
            faults.append(Unreadable(path, str(error)))
            continue
        total.update(digest + label.to_bytes(8, "little"))
        first, other = seen.setdefault(digest, (path, label))
        if other != label:
            names = f"{data.class_name(label)} here and {data.class_name(other)} there"
            faults.append(Unreadable(path, f"the same picture as {first}: {names}"))
        if watch is not None:
            watch(done, len(data))
    damaged = len(seen) == 0 or any("same picture" not in fault.reason for fault in faults)
    return "" if damaged else total.hexdigest(), faults


def is_there(name: str, root: Path) -> bool:
    """Whether there is anything of the set in the root; a quick look."""
    source = SOURCES[name]
    return not source.place or (root / source.place).is_dir()
