"""The best image so far of a run on one picture, step by step while it runs.

Candidates are collected and looked through four times per second, so that watching costs next to
nothing. Each step holds the changed values and the logits alone. Where the steps would be too
many or take too much memory, every second one is dropped.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pinprick.goal import Goal
from pinprick.metrics.unit import Unit
from pinprick.types import Images, Logits
from pinprick.watch import Watch
from pinprick.web.png_bytes import to_bytes

_EVERY = 0.25  # seconds between two looks
_WAITING = 2**22  # elements of candidates that wait at most
_PER_LOOK = 16  # steps
_STORED = 2**25  # bytes of all steps
_STEPS = 4000  # that are held at most


@dataclass(frozen=True, eq=False)
class LiveStep:
    """The best so far after some passes.

    Attributes:
        number: Names its image for the browser; it stays the same when other steps are dropped.
        forwards, backwards: Passes by then.
        margin: The lowest margin of any candidate so far; None if none was finite.
        pixels, elements: Changes of the best candidate.
        fools: Whether it meets the goal.
        positions, values: Its changed elements as flat indices, and their 8-bit values.
        logits: What the model said of it.
    """

    number: int
    forwards: int
    backwards: int
    margin: float | None
    pixels: int
    elements: int
    fools: bool
    positions: Tensor
    values: Tensor
    logits: Tensor

    @property
    def bytes(self) -> int:
        return 5 * len(self.positions) + 4 * len(self.logits)

    def plain(self) -> list[float | int | bool | None]:
        """What the browser gets: all but the image."""
        counts = (self.pixels, self.elements, self.fools)
        return [self.number, self.forwards, self.backwards, self.margin, *counts]


class LiveTrace(Watch):
    """Watches a run on one image.

    Args:
        clean: The clean image, as a batch of one.
        unit: What decides which of two fooling candidates is better.
        pause: Called between two passes, now and then.
    """

    def __init__(self, clean: Images, unit: Unit, pause: Callable[[], None]) -> None:
        self.clean = to_bytes(clean[0])
        self.steps: list[LiveStep] = []
        self.forwards = self.backwards = 0
        self._clean, self._unit, self._pause = clean, unit, pause
        self._waiting: list[tuple[Images, Logits]] = []
        self._elements, self._next = 0, 0.0
        self._goal: Goal | None = None
        self._margin, self._fewest = math.inf, math.inf
        self._count = self._stored = 0

    def see(
        self,
        rows: Tensor,
        images: Images,
        goal: Goal,
        logits: Logits,
        forwards: Tensor,
        backwards: Tensor,
    ) -> None:
        """Collect the candidates, and look through them when it is time."""
        if self._goal is not None and goal.slack != self._goal.slack:
            self.look()
        self._goal = goal
        self._waiting.append((images.clone(), logits))
        self._elements += images.numel()
        now = time.monotonic()
        if now >= self._next or self._elements >= _WAITING:
            self.look()
            self.backwards = int(backwards[0])
            self._pause()
            self._next = time.monotonic() + _EVERY

    def look(self) -> None:
        """Look through the candidates that wait."""
        if not self._waiting or self._goal is None:
            return
        images = torch.cat([one for one, _ in self._waiting])
        logits = torch.cat([one for _, one in self._waiting])
        self._waiting, self._elements = [], 0
        self._note(images, logits, self._goal, self.forwards)
        self.forwards += len(images)

    def end(self, image: Images, logits: Logits, goal: Goal, forwards: int, backwards: int) -> None:
        """The result as the last step, as the referee measured it."""
        self.look()
        self.forwards, self.backwards = forwards, backwards
        changed = image != self._clean
        own = float(goal.margin(logits))
        margin = min(self._margin, own) if math.isfinite(own) else self._margin
        self._add(image[0], logits[0], changed[0], bool(goal.met(logits)), forwards, margin)

    def step(self, number: int) -> LiveStep | None:
        """The step with this number; None if there is none."""
        return next((one for one in self.steps if one.number == number), None)

    def picture(self, number: int) -> Tensor | None:
        """The 8-bit image of a step; None if there is no such step."""
        step = self.step(number)
        if step is None:
            return None
        pixels = self.clean.flatten().clone()
        pixels[step.positions.long()] = step.values
        return pixels.view_as(self.clean)

    def _note(self, images: Images, logits: Logits, goal: Goal, before: int) -> None:
        """Add the steps at which a candidate was better than all before."""
        count = len(images)
        label = goal.labels[:1].expand(count)
        target = None if goal.targets is None else goal.targets[:1].expand(count)
        goals = Goal(label, target, goal.slack)
        met = goals.met(logits).tolist()
        margins = goals.plain.margin(logits.float()).tolist()
        changed = images != self._clean
        units = _any_channel(changed) if self._unit == "pixels" else changed
        counts = units.flatten(1).sum(dim=1).tolist()
        better: list[tuple[int, bool, float]] = []  # row, whether it fools, lowest margin by then
        for row in range(count):
            nearer = margins[row] < self._margin
            self._margin = margins[row] if nearer else self._margin
            if met[row] and counts[row] < self._fewest:
                self._fewest = counts[row]
                better.append((row, True, self._margin))
            elif nearer and math.isinf(self._fewest):
                better.append((row, False, self._margin))
        for row, fools, margin in _some(better):
            own = logits[row]
            self._add(images[row], own, changed[row], fools, before + row + 1, margin)

    def _add(
        self,
        image: Tensor,
        logits: Tensor,
        changed: Tensor,
        fools: bool,
        forwards: int,
        margin: float,
    ) -> None:
        positions = changed.flatten().nonzero().squeeze(1)
        step = LiveStep(
            number=self._count,
            forwards=forwards,
            backwards=self.backwards,
            margin=margin if math.isfinite(margin) else None,
            pixels=int(changed.any(dim=0).sum()),
            elements=len(positions),
            fools=fools,
            positions=positions.int().cpu(),
            values=to_bytes(image.flatten()[positions]),
            logits=logits.float().cpu(),
        )
        self._count += 1
        self._stored += step.bytes
        self.steps.append(step)
        while (self._stored > _STORED or len(self.steps) > _STEPS) and len(self.steps) > 2:
            self.steps = [*self.steps[:-1:2], self.steps[-1]]
            self._stored = sum(one.bytes for one in self.steps)


def _any_channel(changed: Tensor) -> Tensor:
    """Which pixels changed; ten times as fast on a CPU as ``any`` over the channels."""
    return changed.view(torch.uint8).amax(dim=1)


def _some(better: list[tuple[int, bool, float]]) -> list[tuple[int, bool, float]]:
    """At most ``_PER_LOOK`` of them, evenly, with the last."""
    every = -(-len(better) // _PER_LOOK)
    return better[::-1][:: max(1, every)][::-1]
