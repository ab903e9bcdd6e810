"""What a search by scores lowers: the margin to leave a label, the cross-entropy to reach a target.

That is how the papers of Sparse-RS and its followers have it. Either can be asked for by name.
"""

from typing import Literal

import torch

from pinprick.goal import Goal
from pinprick.types import Logits, PerImage

ScoreLoss = Literal["margin", "cross_entropy"]


def score_loss(goal: Goal, logits: Logits, name: ScoreLoss | None = None) -> PerImage:
    """One loss for each image, in single precision at least; infinite where it is no number."""
    by_margin = goal.targets is None if name is None else name == "margin"
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    loss = goal.margin(logits) if by_margin else goal.cross_entropy(logits)
    return loss.nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf)
