"""What a report is made of, whatever it was read from: runs, and what each did to each image."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pinprick.metrics.needed import Numbers
from pinprick.metrics.outcomes import Outcomes

Bytes = NDArray[np.uint8]
PICTURES = "pictures"  # the data of a task on picture files
Status = Literal["fooled", "not fooled", "skipped", "error"]


class Task(NamedTuple):
    """What is attacked: a model on some data, with a goal."""

    model: str
    data: str
    goal: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Steps:
    """The best so far of the images of a run: one entry per step of an image.

    Attributes:
        image: The position of the image in its run.
        passes: Forward and backward passes until then, added up.
        pixels, elements: The fewest changed units until then.
    """

    image: NDArray[np.int64]
    passes: NDArray[np.int64]
    pixels: Numbers
    elements: Numbers


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportRun:
    """One attack with one seed on one task.

    Attributes:
        task: What was attacked.
        attack: Name of the attack.
        settings: Its settings, by which attacks of one name are told apart.
        seed: The seed.
        images: A text per image that names it in all runs on the same data.
        outcomes: What was measured, one entry per image.
        first_success: Forward passes up to the first success; infinite on failure, NaN if unknown.
        lost_as_png: Fooled, but not after rounding to 8-bit values.
        failed: Images with an error in place of numbers.
        steps: The best so far; None without a trace.
        elements: Elements of an image, as far as known.
    """

    task: Task
    attack: str
    settings: Mapping[str, Any]
    seed: int
    images: tuple[str, ...]
    outcomes: Outcomes
    first_success: Numbers
    lost_as_png: NDArray[np.bool_]
    failed: tuple[str, ...] = ()
    steps: Steps | None = None
    elements: int = 3 * 32 * 32


@dataclass(frozen=True, eq=False)
class Change:
    """The changed pixels of one image.

    Attributes:
        shape: Height, width and channels.
        pixels: Flat index of each changed pixel, row by row.
        before: Channel values per pixel, in 8-bit values; None if the clean image is not at hand.
        after: Channel values per pixel in [0, 1].
    """

    shape: tuple[int, int, int]
    pixels: NDArray[np.uint32]
    before: Bytes | None
    after: NDArray[np.float32]


@dataclass(frozen=True, eq=False, kw_only=True)
class Entry:
    """What one run did to one image, as the gallery shows it; None for what is unknown.

    Attributes:
        image: As in ``ReportRun.images``.
        name: The name of the image for people.
        status: How the attack ended. "skipped" images met the goal before the attack.
        png: Whether the image still fools as a PNG.
        pixels, elements: Changed units, where the attack succeeded.
        forwards, backwards: Passes.
        margin: Of the adversarial image; below zero where the attack succeeded.
        label, target: Names of the classes.
        clean, adversarial: Predictions before and after.
        clean_confidence, adversarial_confidence: Their confidences.
        remark: Why it failed, or the error.
        picture: The clean image in 8-bit values, of shape (height, width, channels).
        after: The adversarial image likewise, where it is given in place of ``change``.
        change: The changed pixels.
        explanation: The effects of groups of changed pixels; see ``explained_groups``.
    """

    image: str
    name: str
    status: Status
    png: bool | None = None
    pixels: int | None = None
    elements: int | None = None
    forwards: int | None = None
    backwards: int | None = None
    margin: float | None = None
    label: str | None = None
    target: str | None = None
    clean: str | None = None
    adversarial: str | None = None
    clean_confidence: float | None = None
    adversarial_confidence: float | None = None
    remark: str = ""
    picture: Bytes | None = None
    after: Bytes | None = None
    change: Change | None = None
    explanation: Mapping[str, Any] | None = None


ReadEntries = Callable[[Sequence[str]], list[Entry]]  # of some images, in their order


@dataclass(frozen=True, eq=False, kw_only=True)
class Source:
    """What was read from one store, folder or file.

    Attributes:
        name: What the user gave.
        runs: The runs, each with a function that reads what it did to some images.
        transfers: Lines of the transfer matrix, as ``transfer_lines`` gives them.
        made_with: The version of pinprick and the device, as far as known.
    """

    name: str
    runs: Sequence[tuple[ReportRun, ReadEntries]]
    transfers: Sequence[Mapping[str, Any]] = ()
    made_with: Mapping[str, str] = field(default_factory=dict)


def changed_pixels(clean: Bytes, after: NDArray[Any]) -> Change:
    """The change from a clean image to another one in [0, 1] or in 8-bit values."""
    eight_bit = after.dtype == np.uint8
    different = (clean != after) if eight_bit else (clean.astype(np.float32) / 255 != after)
    rows = np.flatnonzero(different.any(axis=2))
    flat = after.reshape(-1, after.shape[2])[rows].astype(np.float32)
    height, width, channels = clean.shape
    return Change(
        (height, width, channels),
        rows.astype(np.uint32),
        clean.reshape(-1, channels)[rows],
        flat / np.float32(255) if eight_bit else flat,
    )
