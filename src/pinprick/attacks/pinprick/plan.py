"""The stages of Pinprick in their order, each of a fixed length."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

RIVALS = 9  # classes that later starts may aim at
_SMALL, LARGE = 1_000, 10_000  # units: grey images of 28 px are below, 224 px above


@dataclass(frozen=True)
class Stage:
    """A start or an annealing, each followed by a trim, or the ranking of the rivals.

    Attributes:
        kind: Which of them.
        steps: Its length in passes, the trim not counted.
        trim: The length of the trim.
        aim: The rank of the rival that a start aims at; None for the best other class.
        memory: Weight of the past in the running mean of a start's gradients; of an annealing, for
            the start that replaces it.
        temperature: Noise in the draw of such a start's gates; it falls to zero.
        favour: How much it favours some regions of the image; it falls to zero.
        resume: Whether a start goes on with the mean gradient of the image's last one.
    """

    kind: Literal["start", "anneal", "rank"]
    steps: int
    trim: int = 0
    aim: int | None = None
    memory: float = 0.85
    temperature: float = 0.6
    favour: float = 0.0
    resume: bool = False


def stages(units: int, *, targeted: bool) -> Iterator[Stage]:
    """The stages for images of so many units, without end.

    The class to reach is far away, where there is a target, and so are all classes of a large
    image: it takes long starts whose gradients are averaged over many passes.
    """
    if units > LARGE:
        return _large(targeted=targeted)
    trim = max(8, round(10.2 * (units / 1000) ** 0.458))  # 9 at 28 px, 17 at 32 px
    if targeted and units > _SMALL:
        return _targeted(trim)
    return _usual(trim, targeted=targeted)


def _usual(trim: int, *, targeted: bool) -> Iterator[Stage]:
    yield Stage("start", 40, trim, temperature=0.3)
    yield Stage("anneal", 36, trim)
    if not targeted:
        yield Stage("rank", RIVALS)
    rank = itertools.count()
    for turn in itertools.count():
        first = None if targeted else next(rank)
        second = next(rank) if not targeted and turn == 0 else None
        yield Stage("start", 45, trim, first, memory=0.9, temperature=0.6 if turn else 0.0)
        yield Stage("start", 45, trim, second, memory=0.8, favour=1.0)
        yield Stage("anneal", 80, trim)


def _targeted(trim: int) -> Iterator[Stage]:
    yield Stage("start", 60, 40, memory=0.95, temperature=0.0)
    for turn in itertools.count():
        warmth = 0.6 if turn else 0.0
        yield Stage("start", 60, trim, memory=0.95, temperature=warmth, resume=True)
        yield Stage("start", 60, trim, memory=0.9)
        yield Stage("start", 60, trim, memory=0.95, temperature=0.0, favour=1.0, resume=True)
        yield Stage("anneal", 80, trim)


def _large(*, targeted: bool) -> Iterator[Stage]:
    if targeted:
        yield Stage("start", 60, 40, memory=0.95, temperature=0.0)
    else:
        yield Stage("start", 40, 60, memory=0.9, temperature=0.3)
    yield Stage("start", 240, 160, memory=0.97, temperature=0.0, resume=True)
    if not targeted:
        yield Stage("rank", RIVALS)
    for turn in itertools.count():
        yield Stage("start", 240, 160, None if targeted else turn, memory=0.97, temperature=0.3)
        yield Stage("anneal", 80, 100, memory=0.95, temperature=0.3)
