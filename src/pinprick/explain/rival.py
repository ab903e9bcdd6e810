"""The class that an adversarial image is led to."""

import torch

from pinprick.result import AttackResult
from pinprick.types import Labels


def rivals(result: AttackResult) -> Labels:
    """For each image the class that leading noise is about, never the true one.

    It is the target where there was one, else what the adversarial image is taken for; where that
    is still the true class, since the attack failed, the one that comes nearest to it.
    """
    if result.goal.targets is not None:
        return result.goal.targets
    labels = result.goal.labels.unsqueeze(1)
    return result.adversarial_logits.scatter(1, labels, -torch.inf).argmax(dim=1)
