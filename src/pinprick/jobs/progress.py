"""What a job tells its caller while it works."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Advance = Callable[[int], None]  # called with the number of images that were done
Tick = Callable[[int, int], None]  # called with the steps done and the steps of the epoch
ShowEpoch = Callable[[object], None]  # called with an epoch, whose text is its line


@dataclass(frozen=True, kw_only=True)
class CellCount:
    """How far a benchmark is.

    Attributes:
        cells: Number of cells.
        cells_done: Those that are finished.
        images: Number of images.
        images_done: Those in finished cells.
        images_now: Those of them that this run has finished.
        seconds: Time since the run began.
        running: Where something is running and what, a line each.
    """

    cells: int
    cells_done: int
    images: int
    images_done: int
    images_now: int
    seconds: float
    running: tuple[str, ...]

    @property
    def rate(self) -> float:
        """Images per second."""
        return self.images_now / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Time that the other images take at this rate; None before the first cell is finished."""
        return (self.images - self.images_done) / self.rate if self.rate else None

    def __str__(self) -> str:
        """For instance "3 of 8 cells, 30 of 80 images, 2.5 images per second, 20.0 s left"."""
        line = (
            f"{self.cells_done} of {self.cells} cells, {self.images_done} of {self.images} images"
        )
        if self.seconds_left is not None:
            line += f", {self.rate:.3g} images per second, {time_in_words(self.seconds_left)} left"
        return line


def time_in_words(seconds: float) -> str:
    """For instance "20.0 s" or "2.5 h"; a unit is used from two of it on."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


ShowCells = Callable[[CellCount], None]  # called whenever a cell starts or ends, and in between


class Progress:
    """Receives remarks and counts from a job. This one ignores them; the shell prints them."""

    def remark(self, text: str) -> None:
        """Something the user may want to know."""

    def warn(self, text: str) -> None:
        """Something that went wrong with one picture; the job continues without it."""

    @contextmanager
    def count_images(self, total: int, title: str) -> Iterator[Advance]:
        """Give a function to call after each batch of a job on ``total`` images."""
        yield lambda done: None

    @contextmanager
    def show_epochs(
        self, title: str, epochs: int, done: Callable[[], int]
    ) -> Iterator[tuple[Tick, ShowEpoch]]:
        """Give a function to call after each step of a training, and one for each epoch.

        Args:
            title: What is trained on what.
            epochs: Number of epochs.
            done: Gives the number of epochs that are finished.
        """
        yield lambda step, steps: None, lambda epoch: None

    @contextmanager
    def show_cells(self) -> Iterator[ShowCells]:
        """Give a function to call with how far a benchmark is."""
        yield lambda count: None
