"""When an image counts as fooled, and losses that fall as it comes nearer to that.

The losses fall for targeted and untargeted goals alike, so an attack always steps downhill and
need not know which of the two it has.
"""

from dataclasses import dataclass, replace

import torch
from torch.nn import functional as F

from pinprick.batch_rows import BatchRows
from pinprick.types import Labels, Logits, Mask, PerImage


@dataclass(frozen=True)
class Goal(BatchRows):
    """Leave ``labels``, or reach ``targets`` when they are given, by more than ``slack`` logits.

    Results are judged without slack. Attacks get one where the model's logits are noisy, so that
    what they find lies beyond the noise.

    Attributes:
        labels: The true class of each image.
        targets: The class to reach, per image; None for an untargeted goal.
        slack: By how many logits the goal must be met.
    """

    labels: Labels
    targets: Labels | None = None
    slack: float = 0.0

    def met(self, logits: Logits) -> Mask:
        """Which rows of logits meet the goal; logits that are not finite never do."""
        finite = logits.abs().amax(dim=1) < torch.inf  # argmax picks NaN, which must not count
        if self.slack:
            return finite & (self.margin(logits) < 0)
        top = logits.argmax(dim=1)
        met = top != self.labels if self.targets is None else top == self.targets
        return met & finite

    def margin(self, logits: Logits) -> PerImage:
        """How far the logits are from the goal; below zero once it is met."""
        anchor = (self.labels if self.targets is None else self.targets).unsqueeze(1)
        own = logits.gather(1, anchor).squeeze(1)
        rest = logits.scatter(1, anchor, -torch.inf).amax(dim=1)
        gap = own - rest if self.targets is None else rest - own
        return gap + self.slack if self.slack else gap

    @property
    def plain(self) -> "Goal":
        """The same without slack."""
        return replace(self, slack=0.0) if self.slack else self

    def cross_entropy(self, logits: Logits) -> PerImage:
        """Cross-entropy to the target, or the negative of that to the label."""
        if self.targets is None:
            return -F.cross_entropy(logits, self.labels, reduction="none")
        return F.cross_entropy(logits, self.targets, reduction="none")


def least_likely(logits: Logits, labels: Labels) -> Labels:
    """The class with the lowest logit other than the label: the usual choice of targets."""
    return logits.scatter(1, labels.unsqueeze(1), torch.inf).argmin(dim=1)


def strongest_other(logits: Logits, labels: Labels) -> Labels:
    """The class of the highest logit apart from the label."""
    return logits.scatter(1, labels.unsqueeze(1), -torch.inf).argmax(dim=1)
