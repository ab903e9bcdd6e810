"""What a job tells its caller while it works."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pinprick.train.progress import Epoch

Advance = Callable[[int], None]  # called with the number of images that were done
Tick = Callable[[int, int], None]  # called with the steps done and the steps of the epoch


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
    ) -> "Iterator[tuple[Tick, Callable[[Epoch], None]]]":
        """Give a function to call after each step of a training, and one for each epoch.

        Args:
            title: What is trained on what.
            epochs: Number of epochs.
            done: Gives the number of epochs that are finished.
        """
        yield lambda step, steps: None, lambda epoch: None
