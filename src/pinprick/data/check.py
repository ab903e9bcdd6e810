"""Is a set complete? Files, checksums, images per class, and a hash of all its contents."""

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pinprick.data.dataset import Dataset, NoSplit
from pinprick.data.pictures import Unreadable, read_picture
from pinprick.data.registry import data_root, find_source, load_data
from pinprick.errors import BadInput

FileProgress = Callable[[int, int], None]  # files checked, files in all


@dataclass(frozen=True)
class SplitReport:
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
class DataReport:
    """The splits of a set, and what is wrong with its files."""

    name: str
    parts: tuple[SplitReport, ...]
    faults: tuple[Unreadable, ...]


def check_data(
    name: str, *, root: str | Path | None = None, progress: FileProgress | None = None
) -> DataReport:
    """Check every file of the set called ``name``; arguments as for ``load_data``."""
    root = data_root(root)
    source = None if ":" in name else find_source(name)
    faults = [] if source is None else source.faults(root)
    damaged = len(faults) > 0
    parts, missing, refused = [], [], []
    classes = set()
    for split in ("train", "test") if source is None else source.counts:
        try:
            data = load_data(name, root=root, split=split)
        except NoSplit as error:  # the set may have the other one
            missing.append(str(error))
            continue
        except BadInput as error:
            refused.append(str(error))
            continue
        if source is not None and source.shape is not None and len(data) != source.counts[split]:
            reason = f"{split} has {len(data)} images and not {source.counts[split]}"
            faults.append(Unreadable(root / source.place, reason))
        contents, found = hash_contents(data, progress)
        faults += found
        parts.append(SplitReport(data.source, len(data), count_by_class(data), contents))
        classes.add(data.classes)
    if not parts and not faults:
        raise BadInput([*missing, *refused][-1])
    if not damaged:  # otherwise the faults of its files say the same
        faults += [Unreadable(Path(name), reason) for reason in refused]
    if len(classes) > 1:
        faults.append(Unreadable(Path(name), "train and test name other classes"))
    return DataReport(name, tuple(parts), tuple(faults))


def count_by_class(data: Dataset) -> dict[str, int]:
    """How many images each class has; classes of the same name also have their number.

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


def hash_contents(
    data: Dataset, progress: FileProgress | None = None
) -> tuple[str, list[Unreadable]]:
    """SHA-256 of all images and labels in their order, and the files that are damaged.

    Where images are files, the same picture under two labels is a fault too.
    """
    if data.pixels is not None:
        total = hashlib.sha256(repr(tuple(data.pixels.shape)).encode())
        for pixels in data.pixels.split(4096):
            total.update(pixels.contiguous().numpy().tobytes())
        total.update(data.labels.numpy().astype("<i8").tobytes())
        return total.hexdigest(), []
    total, faults, complete = hashlib.sha256(), [], True
    seen: dict[bytes, tuple[Path, int]] = {}
    for done, (path, label) in enumerate(zip(data.files, data.labels.tolist(), strict=True), 1):
        try:
            read_picture(path)
            digest = hashlib.sha256(path.read_bytes()).digest()
        except (BadInput, OSError) as error:
            faults.append(Unreadable(path, str(error)))
            complete = False
            continue
        total.update(digest + label.to_bytes(8, "little"))
        first, other = seen.setdefault(digest, (path, label))
        if other != label:
            names = f"{data.class_name(label)} here and {data.class_name(other)} there"
            faults.append(Unreadable(path, f"the same picture as {first}: {names}"))
        if progress is not None:
            progress(done, len(data))
    return total.hexdigest() if complete and seen else "", faults


def is_there(name: str, root: Path) -> bool:
    """Whether there is anything of the set in the root, without reading it."""
    source = find_source(name)
    return not source.place or (root / source.place).is_dir()
