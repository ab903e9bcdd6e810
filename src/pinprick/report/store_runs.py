"""Runs of a benchmark store as arrays: one run per attack, task and seed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pinprick.metrics.needed import Numbers
from pinprick.metrics.outcomes import Outcomes
from pinprick.metrics.unit import Unit

Indices = NDArray[np.int64]


class Task(NamedTuple):
    """What is attacked: a model on some data, with a goal."""

    model: str
    weights: str
    data: str
    goal: str


@dataclass(frozen=True, eq=False)
class Run:
    """One attack with one seed on one task, one entry per image.

    Attributes:
        index: The images, by their index in the data, ascending.
        correct, skipped: As in the rows.
        pixels, elements: Needed units: 0 for a clean error, infinite where the attack failed.
        forwards, backwards, seconds: What each image cost.
        batch_share: 1 over the number of images in its batch.
        first_success: Forward passes up to the first success; infinite on failure, NaN if unknown.
        fewest: Needed units of the best image that the attack ever saw.
    """

    index: Indices
    correct: NDArray[np.bool_]
    skipped: NDArray[np.bool_]
    pixels: Numbers
    elements: Numbers
    forwards: Indices
    backwards: Indices
    seconds: Numbers
    batch_share: Numbers
    first_success: Numbers
    fewest: Numbers

    def on(self, images: Indices) -> "Run":
        """The run on some of its images."""
        return self.rows(rows_of(images, self.index))

    def rows(self, rows: NDArray[Any] | slice) -> "Run":
        return Run(**{name: values[rows] for name, values in vars(self).items()})

    def needed(self, unit: Unit) -> Numbers:
        return self.pixels if unit == "pixels" else self.elements

    def outcomes(self) -> Outcomes:
        return Outcomes(
            correct=self.correct,
            answered=np.ones_like(self.correct),
            attacked=~self.skipped,
            pixels=self.pixels,
            elements=self.elements,
            forwards=self.forwards,
            backwards=self.backwards,
            seconds=float(self.seconds.sum()),
        )


def rows_of(images: Indices, index: Indices) -> Indices | slice:
    """Where the images are in an ascending array that holds all of them."""
    return slice(None) if len(images) == len(index) else np.searchsorted(index, images)


def shared_images(of_each: Sequence[Indices]) -> Indices:
    """The images that are in all of several ascending arrays."""
    return _joined(np.intersect1d, of_each)


def any_images(of_each: Sequence[Indices]) -> Indices:
    """The images that are in any of several ascending arrays."""
    return _joined(np.union1d, [images for images in of_each if len(images)])


def _joined(join: Callable[[Indices, Indices], Indices], of_each: Sequence[Indices]) -> Indices:
    """One after the other; equal arrays, which are the rule, cost nothing."""
    joined = of_each[0] if len(of_each) else np.array([], dtype=np.int64)
    for images in of_each[1:]:
        if not np.array_equal(joined, images):
            joined = join(joined, images)
    return joined


Seeds = Mapping[int, Run]


@dataclass(frozen=True, eq=False)
class StoreRuns:
    """All runs of a store.

    Attributes:
        attacks: Names of the attacks, with the settings in which those of one name differ.
        tasks: What is attacked, in order.
        runs: The runs by attack and task, and then by seed.
        errors: Rows with an error, by attack and task; 0 where all went well.
        images: All images of each task, also those with an error.
    """

    attacks: tuple[str, ...]
    tasks: tuple[Task, ...]
    runs: Mapping[tuple[str, Task], Seeds]
    errors: Mapping[tuple[str, Task], int]
    images: Mapping[Task, Indices]

    def part(self, tasks: Sequence[Task]) -> "StoreRuns":
        """The runs on some tasks, and the attacks that were run on them."""
        attacks = {attack for attack, task in self.errors if task in tasks}
        return StoreRuns(
            tuple(sorted(attacks)),
            tuple(tasks),
            {key: runs for key, runs in self.runs.items() if key[1] in tasks},
            {key: count for key, count in self.errors.items() if key[1] in tasks},
            {task: images for task, images in self.images.items() if task in tasks},
        )
