"""What counts as fooled, and how far away that is.

Both losses fall as the goal comes nearer, for targeted and untargeted goals alike,
so an attack always steps downhill and never asks which of the two it has.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from pinprick.types import Labels, Logits, Mask, PerImage, Rows


@dataclass(frozen=True)
class Goal:
    """Leave ``labels``, or reach ``targets`` when they are given."""

    labels: Labels
    targets: Labels | None = None

    def met(self, logits: Logits) -> Mask:
        guess = logits.argmax(dim=1)
        met = guess != self.labels if self.targets is None else guess == self.targets
        finite = logits.abs().amax(dim=1) < torch.inf  # argmax picks NaN, which fools nobody
        return met & finite

    def margin(self, logits: Logits) -> PerImage:
        """Logit gap still to close; below zero once the goal is met."""
        anchor = (self.labels if self.targets is None else self.targets).unsqueeze(1)
        own = logits.gather(1, anchor).squeeze(1)
        rest = logits.scatter(1, anchor, -torch.inf).amax(dim=1)
        return own - rest if self.targets is None else rest - own

    def cross_entropy(self, logits: Logits) -> PerImage:
        """Cross-entropy to the target, or its negative to the label that is to be left."""
        if self.targets is None:
            return -F.cross_entropy(logits, self.labels, reduction="none")
        return F.cross_entropy(logits, self.targets, reduction="none")

    def __getitem__(self, rows: Rows) -> "Goal":
        return Goal(self.labels[rows], None if self.targets is None else self.targets[rows])


def least_likely(logits: Logits, labels: Labels) -> Labels:
    """The class that the model believes in least, never the label itself: the paper's targets."""
    return logits.scatter(1, labels.unsqueeze(1), torch.inf).argmin(dim=1)
