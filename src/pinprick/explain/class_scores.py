"""The two classes that an explanation compares, and their scores.

The classes are the true one and the rival, the class that the change leads to.

Adding a constant to all logits changes no decision. So the change of a single logit means nothing
until that constant is fixed. The ``gauge`` fixes it:

    centred            logits minus their mean; linear in the logits
    log_probabilities  logarithm of the softmax; bounded, but raising one class lowers the others
    raw                logits as they are

The margin between two classes is the same in all three.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pinprick.goal import strongest_other
from pinprick.result import AttackResult
from pinprick.types import Labels, Logits

Gauge = Literal["centred", "log_probabilities", "raw"]
GAUGES: tuple[Gauge, ...] = ("centred", "log_probabilities", "raw")


def rivals(result: AttackResult) -> Labels:
    """The class that competes with the label, per image.

    It is the target of a targeted attack, else the prediction for the adversarial image. If that is
    the true class because the attack failed, it is the class with the next largest logit.
    """
    if result.goal.targets is not None:
        return result.goal.targets
    return strongest_other(result.adversarial_logits, result.goal.labels)


def class_scores(
    logits: Logits, classes: Int[Tensor, "batch some"], gauge: Gauge
) -> Float[Tensor, "batch some"]:
    """The scores of some classes of each image, in double precision."""
    logits = logits.double()
    if gauge == "centred":
        logits = logits - logits.mean(dim=1, keepdim=True)
    elif gauge == "log_probabilities":
        logits = logits - torch.logsumexp(logits, dim=1, keepdim=True)
    return logits.gather(1, classes)
