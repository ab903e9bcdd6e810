"""What one run of an attack gave, one entry per image: all that the summary needs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pinprick.metrics.needed import Numbers
from pinprick.metrics.unit import Unit


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcomes:
    """One run on some images.

    Attributes:
        correct: The clean image is classified correctly; statistics are over these.
        answered: The model answered for the clean image.
        attacked: The image was attacked, since its clean prediction did not meet the goal.
        pixels, elements: Changed units where the goal was met, infinite elsewhere.
        forwards, backwards: Passes of the attack.
        seconds: Time of the attack for all images together.
    """

    correct: NDArray[np.bool_]
    answered: NDArray[np.bool_]
    attacked: NDArray[np.bool_]
    pixels: Numbers
    elements: Numbers
    forwards: NDArray[np.int64]
    backwards: NDArray[np.int64]
    seconds: float

    def __len__(self) -> int:
        return len(self.correct)

    def needed(self, unit: Unit) -> Numbers:
        return self.pixels if unit == "pixels" else self.elements

    def needed_or_wrong(self, unit: Unit) -> Numbers:
        """Needed units, 0 where the clean image counts as an error."""
        return np.where(self.correct, self.needed(unit), 0.0)

    @property
    def wrong(self) -> int:
        """Number of images that were misclassified before the attack."""
        return int((self.answered & ~self.correct).sum())
