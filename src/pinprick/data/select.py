"""The images that a subset names, and index files that list images.

A random draw takes the images whose indices have the smallest hashes under its seed, in order. So
it is the same for every version of torch, and a smaller draw is part of a larger one. Whether an
image is drawn before another does not depend on what was left out before.

An index file has one index per line, below comment lines that say which set they belong to.
"""

import hashlib
from pathlib import Path

import torch

from pinprick.data.classes import find_class, whole_number
from pinprick.data.dataset import SPLITS, Dataset
from pinprick.data.registry import load_data
from pinprick.data.subset import Draw, InIndexFile, OfClass, Range, Step, Subset, parse
from pinprick.errors import BadInput
from pinprick.files import write_text, writing
from pinprick.types import Labels, Mask

_HEAD = "# images of "


def load_subset(
    subset: str | Subset, *, root: str | Path | None = None, download: bool = False
) -> Dataset:
    """The images that ``subset`` names, as in "cifar10/test[0:100]".

    Args:
        subset: Which images of which set; ``pinprick.data.subset`` says how it is written.
        root: The folder that sets are kept in; as for ``load_data``.
        download: Whether to fetch what is not there.
    """
    subset = parse(subset) if isinstance(subset, str) else subset
    data = load_data(subset.name, root=root, split=subset.split, download=download)
    for step in subset.steps:
        data = apply_step(data, step)
    return data


def apply_step(data: Dataset, step: Step) -> Dataset:
    """The images that one step chooses; they keep their indices."""
    match step:
        case Range():
            if max(step.stop or 0, step.start + 1) > len(data):
                end = step.start if step.stop is None else step.stop
                raise BadInput(f"there is no image {end - 1} among {len(data)} of {data.source}")
            every = min(step.step, len(data))  # torch does not take a longer one
            return data[step.start : step.stop : every]
        case OfClass():
            names, count = data.classes, len(data.classes) or None
            numbers = torch.tensor(
                [find_class(name, names, count=count, owner=data.name) for name in step.classes]
            )
            return _some(data, torch.isin(data.labels, numbers), f"class={'|'.join(step.classes)}")
        case Draw():
            if step.count > len(data):
                raise BadInput(f"cannot draw {step.count} from {len(data)} images of {data.source}")
            return data[_drawn(data, step)]
        case InIndexFile():
            return data[_positions(data, read_index(Path(step.path), data.source))]


def _some(data: Dataset, rows: Mask, what: str) -> Dataset:
    if not rows.any():
        raise BadInput(f"no image of {data.source} is left by [{what}]")
    return data[rows]


def _drawn(data: Dataset, step: Draw) -> Labels:
    def key(row: int) -> bytes:
        return hashlib.sha256(f"{step.seed}:{numbers[row]}".encode()).digest()

    numbers = data.indices.tolist()
    rows = sorted(range(len(data)), key=key)[: step.count]
    return torch.tensor(sorted(rows), dtype=torch.long)


def _positions(data: Dataset, numbers: list[int]) -> Labels:
    row_of = {number: row for row, number in enumerate(data.indices.tolist())}
    for number in numbers:
        if number not in row_of:
            raise BadInput(f"the index lists image {number}, which is not in {data.source} as cut")
    return torch.tensor([row_of[number] for number in numbers], dtype=torch.long)


def write_index(data: Dataset, path: Path, *, made: str = "") -> None:
    """Write the indices of these images to ``path``; ``made`` says how they were chosen."""
    head = [f"{_HEAD}{data.source}", *([f"# {made}"] if made else [])]
    lines = [*head, *map(str, data.indices.tolist())]
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "\n".join(lines) + "\n")


def read_index(path: Path, source: str) -> list[int]:
    """The indices in the file; ``BadInput`` if it says that they are of another set."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise BadInput(f"the index {path} cannot be read ({reason})") from None
    numbers: list[int] = []
    seen: set[int] = set()
    for at, line in enumerate(map(str.strip, lines), start=1):
        if line.startswith(_HEAD) and not _same_set(line.removeprefix(_HEAD), source):
            raise BadInput(f"the index {path} is of {line.removeprefix(_HEAD)}, not of {source}")
        if not line or line.startswith("#"):
            continue
        number = whole_number(line)
        if number is None or number in seen:
            what = "is not the number of an image" if number is None else "comes twice"
            raise BadInput(f"{line[:40]!r} in line {at} of the index {path} {what}")
        numbers.append(number)
        seen.add(number)
    if not numbers:
        raise BadInput(f"the index {path} lists no images")
    return numbers


def _same_set(one: str, other: str) -> bool:
    """Whether two sources may be the same; of paths, only kind and split are compared."""
    if ":" not in one or ":" not in other:
        return one == other
    return _kind_and_split(one) == _kind_and_split(other)


def _kind_and_split(source: str) -> tuple[str, str]:
    kind, _, path = source.partition(":")
    last = path.rpartition("/")[2]
    return kind, last if last in SPLITS else ""
