"""The stages of Pinprick in their order, each of a fixed length."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

RIVALS = 9  # classes that later starts may aim at
_LARGE = 10_000  # units of an image whose gradients are worth averaging over more passes


@dataclass(frozen=True)
class Stage:
    """A start or an annealing, each followed by a trim, or the ranking of the rivals.

    Attributes:
        kind: Which of them.
        steps: Its length in passes, the trim not counted.
        trim: The length of the trim.
        aim: The rank of the rival that a start aims at; None for whichever class is ahead.
        memory: Weight of the past in the running mean of a start's gradients.
        temperature: How freely the gates of a start are drawn; it falls to zero.
        favour: How much a start favours some regions of the image; it falls to zero.
    """

    kind: Literal["start", "anneal", "rank"]
    steps: int
    trim: int = 0
    aim: int | None = None
    memory: float = 0.85
    temperature: float = 0.6
    favour: float = 0.0


def stages(units: int, *, aimed: bool) -> Iterator[Stage]:
    """The stages for images of so many units, without end.

    Large images need longer ones. A targeted goal (not ``aimed``) leaves no choice of class.
    """
    large = units > _LARGE
    trim = max(8, round(10.2 * (units / 1000) ** 0.458))  # 9 at 28 px, 17 at 32 px, 101 at 224 px
    yield Stage("start", 40, trim, memory=0.9 if large else 0.85, temperature=0.3)
    yield Stage("anneal", 36, trim)
    if aimed:
        yield Stage("rank", RIVALS)
    rank, steps = itertools.count(), 60 if large else 45
    for turn in itertools.count():
        first = next(rank) if aimed else None
        second = next(rank) if aimed and turn == 0 else None
        yield Stage("start", steps, trim, first, memory=0.9, temperature=0.6 if turn else 0.0)
        yield Stage("start", steps, trim, second, memory=0.8, favour=1.0)
        yield Stage("anneal", 80, trim)
