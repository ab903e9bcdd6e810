"""Logits of a coarse model, confirmed by the exact one where the goal is nearly met.

A margin of the coarse model is off by some noise. The candidates whose margin lies within it are
queried again, and get the exact logits. There is room for an eighth of a batch, so that nothing
waits for the device and all of it can be recorded as one pass. The others within the noise get
logits that do not meet the goal. A candidate whose margin is beyond the noise is believed.

The noise follows the confirmations, since dense candidates are further off than the sparse ones
that come later.
"""

from typing import Any

import torch
from torch import Tensor

from pinprick.goal import Goal
from pinprick.model import Model
from pinprick.types import Counts, Images, Logits

_SHARE = 8  # one candidate of so many is confirmed
_ALL = 16  # up to so many candidates, all are
_SAFETY = 1.4  # times the largest change of a confirmed margin: the noise
_FADING = 0.9  # what is left of the noise after a pass, where no confirmation says more


class ConfirmedSearch:
    """The pass of a search: images and classes in, logits out, and which of them are exact.

    The state is in tensors that are changed in place, because a recording refers to them.

    Attributes:
        coarse: The model of the search.
        noise: By how much margins may be off; the caller sets the first value in place.

    Args:
        coarse: The model of the search; gradients are those of it.
        exact: The model that confirms.
        like: Logits, for their type and device.
    """

    def __init__(self, coarse: Model, exact: Model, like: Logits) -> None:
        self.coarse, self._exact = coarse, exact
        self.noise = like.new_zeros(())
        self._sign, self._slack = like.new_ones(()), like.new_zeros(())
        self._goal = (False, 0.0)

    def aim(self, goal: Goal) -> Counts:
        """Search for this goal from now on; gives what the pass takes beside the images."""
        kind = (goal.targets is not None, goal.slack)
        if kind != self._goal:
            self._goal = kind
            self._sign.fill_(-1.0 if kind[0] else 1.0)
            self._slack.fill_(kind[1])
        return (goal.labels if goal.targets is None else goal.targets) + 1

    def __call__(self, images: Images, classes: Counts) -> Logits:
        """Logits of candidates, and in a last column which of them are those of the exact model.

        Args:
            images: The candidates.
            classes: One more than the label or the target of each; 0 for a row of padding.
        """
        logits = self.coarse(images)
        values: Tensor = _Valued.apply(logits, self._confirmed(images, logits, classes))
        return values

    @torch.no_grad()
    def _confirmed(self, images: Images, logits: Logits, classes: Counts) -> Tensor:
        own = (classes - 1).clamp_min(0)
        margin = self._margin(logits, own).masked_fill(classes == 0, torch.inf)
        middle = -0.5 * self.noise  # of those that may meet the goal in error
        chosen = (margin - middle).abs().topk(confirmed_of(len(images)), largest=False).indices
        exact = self._exact(images[chosen]).to(logits.dtype)
        change = (self._margin(exact, own[chosen]) - margin[chosen]).nan_to_num(0.0, 0.0, 0.0)
        self.noise.copy_(torch.maximum(_FADING * self.noise, _SAFETY * change.abs().amax()))
        doubtful = (margin < 0) & (margin > -self.noise)
        raised = (doubtful * self._sign * self.noise).unsqueeze(1)
        values = logits.scatter_add(1, own.unsqueeze(1), raised).index_copy(0, chosen, exact)
        judged = torch.zeros_like(margin).index_fill(0, chosen, 1.0)
        return torch.cat((values, judged.unsqueeze(1)), dim=1)

    def _margin(self, logits: Logits, own: Tensor) -> Tensor:
        return self._sign * Goal(own).margin(logits) + self._slack


def confirmed_of(count: int) -> int:
    """How many of so many candidates are confirmed."""
    return min(count, max(_ALL, count // _SHARE))


class _Valued(torch.autograd.Function):
    """Other values for the logits, with the gradient of the logits, and a column without one."""

    @staticmethod
    def forward(ctx: Any, logits: Logits, values: Tensor) -> Tensor:
        return values

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad[:, :-1].contiguous(), None
