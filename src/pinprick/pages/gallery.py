"""The images of a report: which are shown, and how they are packed.

Clean pictures are packed into sheets, PNG files with up to 64 pictures each; a picture that several
tasks share is packed once. A change is packed as the changed pixels: their flat indices (32 bits),
their channel values before (8 bits) and after (16 bits). A change that takes more space than a
picture is packed as a picture.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pinprick.pages.encode_png import encode_png
from pinprick.pages.report_parts import Bytes, Change, Entry, ReportRun
from pinprick.pages.tasks import PNG_SHARE, TaskRuns

BLOCK = 64  # images whose changes are unpacked together, and pictures per sheet
DEFAULT_IMAGES = 1000
_DEFAULT_BYTES = 10_000_000  # of pictures, where the user names no number of images
_AFTER = 65535  # channel values after the attack are in 16 bits
_COLUMNS = 8  # pictures per row of a sheet


def share_images(tasks: Sequence[TaskRuns], most: int | None) -> list[int]:
    """How many images of each task are shown, as equal as their numbers allow.

    Args:
        tasks: The tasks.
        most: Most images of all tasks; None for 1000, or as many as take about 10 MB.
    """
    sizes = [len(task.images) for task in tasks]
    if most is None:
        each = _DEFAULT_BYTES / len(tasks)
        sizes = [min(n, int(each / task.bytes_each)) for n, task in zip(sizes, tasks, strict=True)]
    left, shares = DEFAULT_IMAGES if most is None else most, [0] * len(tasks)
    order = sorted(range(len(tasks)), key=lambda number: sizes[number])
    for done, number in enumerate(order):
        shares[number] = min(sizes[number], left // (len(tasks) - done))
        left -= shares[number]
    return shares


def choose_images(task: TaskRuns, most: int) -> list[str]:
    """At most so many images of a task, in order.

    Rare images come first and get up to half of the places: errors, images on which attacks
    disagree, and images that do not fool as PNG. The others are spread evenly.
    """
    every = task.images
    if len(every) <= most:
        return every
    rare = rare_images([runs[0] for runs in task.by_attack.values()])
    others = [image for image in every if image not in rare]
    special = _spread(
        [image for image in every if image in rare], max(most // 2, most - len(others))
    )
    chosen = {*special, *_spread(others, most - len(special))}
    return [image for image in every if image in chosen]


def rare_images(runs: Sequence[ReportRun]) -> set[str]:
    """Images with an error, or that do not fool as PNG, or on which two attacks disagree."""
    fooled: dict[str, set[bool]] = {}
    rare: set[str] = set()
    for run in runs:
        rare.update(run.failed)
        success = np.isfinite(run.outcomes.pixels).tolist()
        for image, attacked, won, lost in zip(
            run.images,
            run.outcomes.attacked.tolist(),
            success,
            run.lost_as_png.tolist(),
            strict=True,
        ):
            if attacked:
                fooled.setdefault(image, set()).add(won)
            if lost:
                rare.add(image)
    return rare | {image for image, outcomes in fooled.items() if len(outcomes) > 1}


def _spread(images: Sequence[str], most: int) -> list[str]:
    if len(images) <= most:
        return list(images)
    rows = np.linspace(0, len(images) - 1, most).round().astype(int)
    return [images[row] for row in rows.tolist()]


@dataclass(frozen=True, eq=False)
class Gallery:
    """Packed pictures and changes of the images that were added.

    Attributes:
        pictures: All pictures, of any size.
        numbers: The number of each picture, by the hash of its values.
        blocks: Packed changes, by a name such as "2-0": the task, and the block of its images.
    """

    pictures: list[Bytes] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)
    blocks: dict[str, dict[str, list[Any]]] = field(default_factory=dict)

    def add_picture(self, picture: Bytes | None) -> int | None:
        """The number of a picture, which is packed once."""
        if picture is None:
            return None
        if picture.shape[2] not in (1, 3):  # what a PNG holds
            picture = picture[:, :, :1]
        key = hashlib.sha256(picture.tobytes() + str(picture.shape).encode()).digest()
        if key not in self.numbers:
            self.numbers[key] = len(self.pictures)
            self.pictures.append(picture)
        return self.numbers[key]

    def add_task(
        self, number: int, images: Sequence[str], entries: Mapping[str, Mapping[str, Entry]]
    ) -> dict[str, Any]:
        """Pack the images of a task, and give their numbers and texts as columns.

        Args:
            number: The number of the task.
            images: The images to show.
            entries: What each attack did to some of them.
        """
        firsts = [_first(image, entries) for image in images]
        texts: dict[str | None, int] = {}
        columns: dict[str, Any] = {
            "name": [entry.name for entry in firsts],
            "picture": [self.add_picture(entry.picture) for entry in firsts],
            "label": [_text(entry.label, texts) for entry in firsts],
            "target": [_text(entry.target, texts) for entry in firsts],
            "clean": [_text(entry.clean, texts) for entry in firsts],
            "clean_confidence": [_short(entry.clean_confidence) for entry in firsts],
            "attacks": {
                attack: _columns([own.get(image) for image in images], texts)
                for attack, own in entries.items()
            },
        }
        for start in range(0, len(images), BLOCK):
            self.blocks[f"{number}-{start // BLOCK}"] = {
                attack: [self._packed(own.get(image)) for image in images[start : start + BLOCK]]
                for attack, own in entries.items()
            }
        columns["texts"] = list(texts)
        return columns

    def sheets(self) -> tuple[list[list[int]], list[str]]:
        """Where each picture is (sheet, left, top, width, height), and the sheets in base64."""
        places: list[list[int]] = [[]] * len(self.pictures)
        sheets: list[str] = []
        shapes: dict[tuple[int, ...], list[int]] = {}
        for number, picture in enumerate(self.pictures):
            shapes.setdefault(picture.shape, []).append(number)
        for (height, width, channels), numbers in shapes.items():
            for start in range(0, len(numbers), BLOCK):
                some = numbers[start : start + BLOCK]
                across = min(_COLUMNS, len(some))
                down = -(-len(some) // across)
                sheet = np.zeros((down * height, across * width, channels), dtype=np.uint8)
                for at, number in enumerate(some):
                    top, left = at // across * height, at % across * width
                    sheet[top : top + height, left : left + width] = self.pictures[number]
                    places[number] = [len(sheets), left, top, width, height]
                sheets.append(base64.b64encode(encode_png(sheet, level=9)).decode())
        return places, sheets

    def _packed(self, entry: Entry | None) -> Any:
        """The change of one image: packed text, a picture by number, or None."""
        if entry is None or (entry.change is None and entry.after is None):
            return None
        packed: dict[str, Any] = {}
        if entry.change is not None and _is_small(entry.change):
            packed["pixels"] = pack_change(entry.change)
            packed["channels"] = entry.change.shape[2]
            packed["size"] = entry.change.shape[1::-1]
            if entry.change.before is None:
                packed["no_clean"] = True
        else:
            after = entry.after
            if after is None and entry.change is not None and entry.picture is not None:
                after = _applied(entry.picture, entry.change)
            packed["picture"] = self.add_picture(after)
        if entry.explanation is not None:
            packed["explanation"] = entry.explanation
        return packed


def pack_change(change: Change) -> str:
    """Flat indices, values before and values after, in base64, least significant bytes first."""
    before = np.zeros(change.after.shape) if change.before is None else change.before
    parts = (
        change.pixels.astype("<u4").tobytes(),
        before.astype("u1").tobytes(),
        (change.after.clip(0, 1) * _AFTER).round().astype("<u2").tobytes(),
    )
    return base64.b64encode(b"".join(parts)).decode()


def _is_small(change: Change) -> bool:
    """Whether packed pixels take no more space than a picture."""
    height, width, channels = change.shape
    return len(change.pixels) * (4 + 3 * channels) <= PNG_SHARE * height * width * channels


def _applied(picture: Bytes, change: Change) -> Bytes:
    after = picture.reshape(-1, picture.shape[2]).copy()
    after[change.pixels] = (change.after * 255).round()
    return after.reshape(picture.shape)


def _first(image: str, entries: Mapping[str, Mapping[str, Entry]]) -> Entry:
    """The entry that says most about an image: with a picture and a label, if there is one."""
    own = [of_attack[image] for of_attack in entries.values() if image in of_attack]
    return max(own, key=lambda entry: (entry.label is not None, entry.picture is not None))


def _columns(entries: Sequence[Entry | None], texts: dict[str | None, int]) -> dict[str, Any]:
    def column(name: str) -> list[Any]:
        return [None if entry is None else getattr(entry, name) for entry in entries]

    return {
        "status": column("status"),
        "png": column("png"),
        "pixels": column("pixels"),
        "elements": column("elements"),
        "forwards": column("forwards"),
        "backwards": column("backwards"),
        "margin": [_short(margin) for margin in column("margin")],
        "adversarial": [_text(name, texts) for name in column("adversarial")],
        "confidence": [_short(sure) for sure in column("adversarial_confidence")],
        "remark": [_text(remark or None, texts) for remark in column("remark")],
        "explained": [entry is not None and entry.explanation is not None for entry in entries],
    }


def _text(text: str | None, texts: dict[str | None, int]) -> int | None:
    """The number of a text in the list of all texts."""
    return None if text is None else texts.setdefault(text, len(texts))


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
