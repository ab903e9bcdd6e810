"""Passes per image, and the best so far of each image against its passes.

A step is recorded after a pass that improved something: the margin of any candidate, or the pixels
or elements of one that met the goal. What an attack returns without a query is the last step, if it
is better still. So one run shows how well the attack does with any smaller number of passes.

Only answers in float32 are recorded. A search in bfloat16 (``speed.py``) confirms some of them.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.goal import Goal
from pinprick.metrics.unit import Unit, check_unit
from pinprick.types import Counts, Logits, PerImage, Rows

_SEVERAL = 2**18  # answers that are collected before they are processed


@dataclass(frozen=True, eq=False)
class Passes(BatchRows):
    """Forward and backward passes of each image: of a start, or of one stage of an attack."""

    forwards: Counts
    backwards: Counts


@dataclass(frozen=True, eq=False)
class Trace(BatchRows):
    """The steps of all images, image after image; the first step of each is the clean image.

    Attributes:
        steps: Number of steps per image.
        forwards, backwards: Passes of the image by each step.
        margin: The lowest margin so far; below zero once the goal was met.
        pixels, elements: Fewest changes so far of a candidate that met the goal; infinite before
            there was one, 0 where the clean image met it.
    """

    steps: Counts
    forwards: Int[Tensor, " steps"]
    backwards: Int[Tensor, " steps"]
    margin: Float[Tensor, " steps"]
    pixels: Float[Tensor, " steps"]
    elements: Float[Tensor, " steps"]

    def __len__(self) -> int:
        return len(self.steps)

    def fewest_after(self, forwards: int, unit: Unit = "pixels") -> PerImage:
        """Fewest changed units that fooled each image by then; infinite where none did."""
        check_unit(unit)
        return self._lowest(getattr(self, unit), forwards)

    def margin_after(self, forwards: int) -> PerImage:
        """The lowest margin of each image after so many passes."""
        return self._lowest(self.margin, forwards)

    def _lowest(self, values: Tensor, forwards: int) -> PerImage:
        lowest = values.new_full((len(self),), torch.inf)
        values = values.masked_fill(self.forwards > forwards, torch.inf)
        return lowest.scatter_reduce(0, self._owners(), values, "amin")

    def _owners(self) -> Tensor:
        """The row of the image of each step."""
        rows = torch.arange(len(self), device=self.steps.device)
        return rows.repeat_interleave(self.steps)

    @cached_property
    def _first(self) -> Tensor:
        """The index of the first step of each image."""
        return self.steps.cumsum(0) - self.steps

    def __getitem__(self, rows: Rows | slice) -> "Trace":
        """The steps of some of the images."""
        steps = self.steps[rows]
        first = self._first[rows]
        before = steps.cumsum(0) - steps
        place = torch.arange(int(steps.sum()), device=steps.device)
        place = place + (first - before).repeat_interleave(steps)
        return Trace(steps, *(getattr(self, name)[place] for name in PER_STEP))

    def followed_by(self, other: "Trace", forwards: Counts, backwards: Counts) -> "Trace":
        """This trace, continued by that of a later run on the same images.

        ``forwards`` and ``backwards`` are the passes before that run.
        """
        later = other._owners()
        order = torch.cat((self._owners(), later)).argsort(stable=True)
        return _staircase(
            torch.cat((self._owners(), later))[order],
            torch.cat((self.forwards, other.forwards + forwards[later]))[order],
            torch.cat((self.backwards, other.backwards + backwards[later]))[order],
            torch.cat((self._values(), other._values()))[order],
            images=len(self),
        )

    def _values(self) -> Tensor:
        return torch.stack((self.margin, self.pixels, self.elements), dim=1)


PER_STEP = ("forwards", "backwards", "margin", "pixels", "elements")


class Tracer:
    """Records the steps during a run; answers are collected and processed together.

    Args:
        goal: The goal of each image.
        clean_logits: The logits of the clean images.
    """

    def __init__(self, goal: Goal, clean_logits: Logits) -> None:
        self._count = len(clean_logits)
        rows = torch.arange(self._count, device=clean_logits.device)
        nothing = torch.zeros_like(rows)
        values = _values(goal, clean_logits, nothing, nothing)
        self._found = Trace(torch.ones_like(rows), nothing, nothing, *values.unbind(dim=1))
        self._asked = nothing
        self._noted: list[tuple[Tensor, Tensor, Tensor]] = []
        self._waiting = 0

    def note(
        self,
        rows: Tensor,
        backwards: Counts,
        goal: Goal,
        logits: Logits,
        changed: Tensor,
    ) -> None:
        """Record some candidates and their logits.

        Args:
            rows: The row of the image of each.
            backwards: Backward passes of each image so far.
            goal: The goal of each.
            logits: The logits of each; NaN for a pass that is counted and nothing else.
            changed: Which values of each differ from the clean image.
        """
        values = _values(goal, logits.detach(), *_counts(changed))
        self._noted.append((rows, backwards, values))
        self._waiting += len(rows)
        if self._waiting >= _SEVERAL:
            self._go_through()

    def trace(
        self, goal: Goal, logits: Logits, changed: Tensor, forwards: Counts, backwards: Counts
    ) -> Trace:
        """All steps, and the result as the last one if it is better still.

        Args:
            goal: The goal of each image.
            logits: The logits of the results.
            changed: Which values of each differ from the clean image.
            forwards: All forward passes of each image.
            backwards: All backward passes of each image.
        """
        self._go_through()
        values = _values(goal, logits, *_counts(changed)).unbind(dim=1)
        one, nothing = torch.ones_like(self._asked), torch.zeros_like(self._asked)
        return self._found.followed_by(Trace(one, forwards, backwards, *values), nothing, nothing)

    def _go_through(self) -> None:
        if not self._noted:
            return
        columns = zip(*self._noted, strict=True)
        rows, backwards, values = (torch.cat(column) for column in columns)
        order = rows.argsort(stable=True)
        rows, backwards, values = rows[order], backwards[order], values[order]
        number = torch.arange(1, len(rows) + 1, device=rows.device)  # of the pass of its image
        number = number - torch.searchsorted(rows, rows)
        count = torch.bincount(rows, minlength=self._count)
        nothing = torch.zeros_like(self._asked)
        new = Trace(count, number, backwards, *values.unbind(dim=1))
        self._found = self._found.followed_by(new, self._asked, nothing)
        self._asked = self._asked + count
        self._noted, self._waiting = [], 0


def _counts(changed: Tensor) -> tuple[Counts, Counts]:
    """Number of changed pixels and of changed elements."""
    return changed.any(dim=1).flatten(1).sum(dim=1), changed.flatten(1).sum(dim=1)


def _values(goal: Goal, logits: Logits, pixels: Counts, elements: Counts) -> Tensor:
    """Margin, pixels and elements, lower is better; infinite where the goal is not met."""
    precise = logits.to(torch.promote_types(logits.dtype, torch.float32))
    margin = goal.plain.margin(precise).float().where(logits.isfinite().all(dim=1), torch.inf)
    unmet = ~goal.met(logits)
    counts = (count.float().masked_fill(unmet, torch.inf) for count in (pixels, elements))
    return torch.stack((margin, *counts), dim=1)


def _staircase(
    owner: Tensor, forwards: Tensor, backwards: Tensor, values: Tensor, *, images: int
) -> Trace:
    """The first entry of each image, and those where a value is lower than in all before.

    The entries of an image are consecutive, in the order of its passes.
    """
    lowest = torch.stack([_lowest_so_far(column, owner) for column in values.unbind(1)], dim=1)
    first = torch.ones_like(owner, dtype=torch.bool)
    first[1:] = owner[1:] != owner[:-1]
    step = first.clone()
    step[1:] |= (lowest[1:] < lowest[:-1]).any(dim=1)
    steps = torch.bincount(owner[step], minlength=images)
    return Trace(steps, forwards[step], backwards[step], *lowest[step].unbind(dim=1))


def _lowest_so_far(values: Tensor, owner: Tensor) -> Tensor:
    """The running minimum of each owner's values.

    Each owner's levels lie below those of all before it, so one running minimum is enough.
    """
    known, level = values.unique(return_inverse=True)
    below = owner * len(known)
    lowest: Tensor = known[(level - below).cummin(dim=0).values + below]
    return lowest
