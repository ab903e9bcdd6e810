"""Subsets of the places of an image, drawn without replacement, for each image its own.

Each place p has an arrival time, exponential with rate ``weight_p``; the k that come first are a
draw of k places, one after another, each with probability in proportion to its weight among those
that are left. Minus the logarithm of the time is ``log weight_p`` plus Gumbel noise, so this is the
Gumbel top-k trick (Kool, van Hoof, Welling, ICML 2019), and it is exact.

Places that do not overlap can be drawn from by the same times, since each place has its own.
"""

from torch import Tensor

from pinprick.parts.largest import open_largest
from pinprick.random import Streams


def draw_times(rng: Streams, places: int, *, step: int, use: str) -> Tensor:
    """An arrival time at rate one for each place, of shape (batch, places); never 0."""
    draw = rng.uniform(places, step=step, use=use)
    return (-(-draw).log1p()).clamp_min(2**-25)


def draw_subset(weights: Tensor, times: Tensor, count: Tensor, most: int) -> Tensor:
    """A mask of ``count`` places drawn by ``weights``, fewer where fewer have a weight above 0.

    Args:
        weights: How likely each place is, (batch, places), none below 0; or several draws for each
            image, (batch, draw, places).
        times: From ``draw_times``.
        count: How many to draw for each image, or for each draw.
        most: A bound on the counts, which saves asking the device for it.
    """
    return open_largest(weights / times, count, most)
