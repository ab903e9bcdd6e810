"""What an attack is given: images, what to make of them, and a model that counts its answers.

A problem can be cut: ``problem[rows]`` is the same problem for some of its images, or for several
copies of them, and everything that goes with an image (goal, random stream, where it may change,
counters, limits) goes along.

Counting and the limits work on the device, without waiting for it: only a problem with limits
looks at its counters while it runs, since a row out of budget is not forwarded.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from pinprick.errors import BadInput, OverBudget
from pinprick.goal import Goal
from pinprick.model import Model
from pinprick.random import Streams
from pinprick.types import Allowed, Counts, Images, Logits, Mask, PerImage, Rows


class Problem:
    """Images in [0, 1], the goal for each, and the only way to ask the model about them.

    Attributes:
        images: The clean images.
        goal: What is to be reached for each.
        rng: One random stream for each.
        allowed: Where values may change; None for everywhere.
        tally: Passes spent, one counter an image, shared by all cuts.

    Args:
        model: Asked through ``logits`` and ``gradient`` alone.
        images, goal, rng, allowed: As above.
        gradients: Whether the attack may ask for gradients.
        clean_logits: What a row out of budget is answered; needed where there are limits.
        max_forwards, max_backwards: Most passes for each image.
        strict: Raise ``OverBudget`` instead of answering a row that is out of budget.
    """

    def __init__(
        self,
        model: Model,
        images: Images,
        goal: Goal,
        rng: Streams,
        *,
        allowed: Allowed | None = None,
        gradients: bool = True,
        clean_logits: Logits | None = None,
        max_forwards: int | None = None,
        max_backwards: int | None = None,
        strict: bool = False,
    ) -> None:
        self.images, self.goal, self.rng, self.allowed = images, goal, rng, allowed
        self.tally = Tally(len(images), images.device, max_forwards, max_backwards, strict)
        self._model, self._gradients, self._clean_logits = model, gradients, clean_logits
        self._rows = torch.arange(len(images), device=images.device)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows: Rows) -> "Problem":
        cut = object.__new__(Problem)
        cut.__dict__.update(self.__dict__)
        cut.images, cut.goal, cut.rng = self.images[rows], self.goal[rows], self.rng[rows]
        cut.allowed = None if self.allowed is None else self.allowed[rows]
        if self._clean_logits is not None:
            cut._clean_logits = self._clean_logits[rows]
        cut._rows = self._rows[rows]
        return cut

    @property
    def forwards(self) -> Counts:
        """How many forward passes were spent on each image so far."""
        return self.tally.forwards[self._rows]

    @property
    def out_of_budget(self) -> Mask:
        """Which images have asked for more passes than they have."""
        return self.tally.out_of_budget[self._rows]

    def logits(self, images: Images) -> Logits:
        """What the model says of one candidate for each image of the problem."""
        assert len(images) == len(self), "one candidate for each image; cut the problem first"
        if self.tally.max_forwards is not None:
            within = self.tally.may_forward(self._rows)
            if not within.all():
                assert self._clean_logits is not None, "limits need clean_logits"
                nothing = 0 * images.flatten(1)[:, :1].to(self._clean_logits.dtype)
                answers = self._clean_logits + nothing  # no gradient, and no error for want of one
                if within.any():
                    answers = answers.index_put((within,), self[within]._ask(images[within]))
                return answers
        return self._ask(images)

    def gradient(self, images: Images, loss: Callable[[Logits], PerImage]) -> Images:
        """Gradient of ``loss`` at ``images``, each image by itself."""
        return self.logits_and_gradient(images, loss)[1]

    def logits_and_gradient(
        self, images: Images, loss: Callable[[Logits], PerImage]
    ) -> tuple[Logits, Images]:
        """Both from one forward and one backward pass; what is not finite in a gradient is zero."""
        logits, gradients = self.logits_and_gradients(images, lambda logits: loss(logits)[:, None])
        return logits, next(gradients)

    def logits_and_gradients(
        self, images: Images, losses: Callable[[Logits], Tensor]
    ) -> tuple[Logits, Iterator[Images]]:
        """One forward pass now, and a backward pass for each of several losses as it is asked for.

        ``losses`` maps logits to several losses an image, of shape (batch, several).
        """
        images = images.detach().requires_grad_()
        with torch.enable_grad():
            logits = self.logits(images)
            totals = list(losses(logits).sum(dim=0).unbind())
        if not all(total.requires_grad for total in totals):
            raise BadInput(
                "the model passes no gradient back; give it as Classifier(..., access='scores') "
                "and use an attack that needs scores alone"
            )
        return logits.detach(), self._gradients_of(totals, images)

    def _gradients_of(self, totals: list[Tensor], images: Images) -> Iterator[Images]:
        while totals:
            total = totals.pop(0)
            (grad,) = torch.autograd.grad(total, images, retain_graph=bool(totals))
            grad = grad.nan_to_num(0.0, 0.0, 0.0)
            self.tally.note_gradient(self._rows, grad)
            yield grad

    def _ask(self, images: Images) -> Logits:
        self.tally.forwards.index_add_(0, self._rows, torch.ones_like(self._rows))
        if self._gradients and torch.is_grad_enabled() and images.requires_grad:
            return self._model(_CountBackward.apply(images, self.tally, self._rows))
        with torch.no_grad():
            return self._model(images)


class Tally:
    """Passes spent on each image of the whole problem, and the most that may be."""

    def __init__(
        self,
        images: int,
        device: torch.device,
        max_forwards: int | None,
        max_backwards: int | None,
        strict: bool,
    ) -> None:
        self.forwards: Counts = torch.zeros(images, dtype=torch.long, device=device)
        self.backwards: Counts = torch.zeros_like(self.forwards)
        self.out_of_budget: Mask = torch.zeros_like(self.forwards, dtype=torch.bool)
        self.flat: Counts = torch.zeros_like(self.forwards)  # gradients that came back all zero
        self.max_forwards, self.max_backwards, self.strict = max_forwards, max_backwards, strict

    def may_forward(self, rows: Tensor) -> Mask:
        assert self.max_forwards is not None
        return self._within(self.forwards, rows, self.max_forwards, "forward")

    def may_backward(self, rows: Tensor) -> Mask | None:
        if self.max_backwards is None:
            return None
        return self._within(self.backwards, rows, self.max_backwards, "backward")

    def note_gradient(self, rows: Tensor, grad: Images) -> None:
        self.flat.index_add_(0, rows, (grad == 0).flatten(1).all(dim=1).long())

    def _within(self, spent: Tensor, rows: Tensor, limit: int, kind: str) -> Mask:
        within = spent[rows] + _copies_before(rows) < limit
        self.out_of_budget[rows[~within]] = True
        if self.strict and not within.all():
            raise OverBudget(f"an image asked for more than its {limit} {kind} passes")
        return within


def _copies_before(rows: Tensor) -> Tensor:
    """For each entry, how many equal ones stand before it."""
    order = rows.argsort(stable=True)
    ranked = rows[order]
    first = torch.searchsorted(ranked, ranked)
    place = torch.arange(len(rows), device=rows.device)
    return torch.empty_like(rows).index_put_((order,), place - first)


class _CountBackward(torch.autograd.Function):
    """The identity; counts a backward pass for each of its rows when one comes through."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, tally: Tally, rows: Tensor) -> Tensor:
        ctx.tally, ctx.rows = tally, rows
        return images.view_as(images)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        within = ctx.tally.may_backward(ctx.rows)
        if within is None:
            ctx.tally.backwards.index_add_(0, ctx.rows, torch.ones_like(ctx.rows))
            return grad, None, None
        ctx.tally.backwards.index_add_(0, ctx.rows, within.long())
        return grad.where(within.view(-1, 1, 1, 1), 0), None, None
