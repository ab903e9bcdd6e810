"""Numbers of images in a text file: one a line, under lines that say what they are numbers of."""

from pathlib import Path

from pinprick.aside import aside
from pinprick.data.classes import whole_number
from pinprick.data.dataset import Dataset
from pinprick.data.split import SPLITS
from pinprick.errors import BadInput

_OF = "# images of "


def write_index(data: Dataset, path: Path, *, made: str = "") -> None:
    """Write down which images these are; ``made`` says how they were chosen."""
    head = [f"{_OF}{data.source}", *([f"# {made}"] if made else [])]
    lines = [*head, *map(str, data.indices.tolist())]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside(path) as place:
            place.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror or error}") from None


def read_index(path: Path, source: str) -> list[int]:
    """The numbers in the file, which must be of ``source`` if it says of what they are."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise BadInput(f"the index {path} cannot be read ({reason})") from None
    numbers: list[int] = []
    seen: set[int] = set()
    for at, line in enumerate(map(str.strip, lines), start=1):
        if line.startswith(_OF) and not _same_set(line.removeprefix(_OF), source):
            raise BadInput(f"the index {path} is of {line.removeprefix(_OF)}, not of {source}")
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
    """Whether two sources may be the same; of paths, which differ elsewhere, kind and split are."""
    if ":" not in one or ":" not in other:
        return one == other
    return _kind_and_split(one) == _kind_and_split(other)


def _kind_and_split(source: str) -> tuple[str, str]:
    kind, _, path = source.partition(":")
    last = path.rpartition("/")[2]
    return kind, last if last in SPLITS else ""
