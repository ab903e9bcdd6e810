"""Which units a round of C&W L0 freezes: those that did least."""

import torch
from torch import Tensor

from pinprick.types import Counts, PerImage

_MATTERS = 0.01  # the score of a unit that ends the freezing
_FREEZE = 0.3  # times the square root of the units changed: how many a round freezes


def choose_least(
    scores: Tensor, is_open: Tensor, changed: PerImage, share: float
) -> tuple[Tensor, Counts]:
    """The place of each unit in the order of freezing, and how many are to be frozen.

    Args:
        scores: What each unit did, (batch, unit).
        is_open: Which are not frozen yet; the others come last.
        changed: How many units of each image are changed.
        share: At least this share of the open ones is frozen.
    """
    ranked, order = scores.masked_fill(~is_open, torch.inf).sort(dim=1, stable=True)
    places = torch.arange(scores.shape[1], device=scores.device, dtype=torch.int32)
    rank = torch.empty_like(order, dtype=torch.int32).scatter_(1, order, places.expand_as(order))
    few = (_FREEZE * changed.sqrt()).ceil().clamp_min(1).long()
    few = torch.minimum(few, 1 + (ranked <= _MATTERS).sum(dim=1))
    return rank, torch.maximum(few, (share * is_open.sum(dim=1)).ceil().long())
