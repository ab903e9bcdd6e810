"""What a class is given, in numbers that can be compared between images.

A constant added to all logits changes no decision, so the change of one logit means nothing until
that freedom is taken away. ``centred`` takes off the mean of all logits, which is linear;
``log_probabilities`` is bounded but couples the classes: what raises one lowers the others.
``raw`` leaves logits as they are. The gap between two classes is the same in all three.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pinprick.types import Logits

Gauge = Literal["centred", "log_probabilities", "raw"]
GAUGES: tuple[Gauge, ...] = ("centred", "log_probabilities", "raw")


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
