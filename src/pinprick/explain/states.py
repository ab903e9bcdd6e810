"""What the model says of an image, in the few numbers that an explanation keeps."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pinprick.explain.gauge import Gauge, class_scores
from pinprick.types import Logits

States = Float[Tensor, "batch 6"]  # in the order of explanation.State


def states(logits: Logits, classes: Int[Tensor, "batch 2"], gauge: Gauge) -> States:
    """Guess, margin between the two classes, their scores, and their probabilities."""
    scores = class_scores(logits, classes, gauge)
    chances = class_scores(logits, classes, "log_probabilities").exp()
    raw = class_scores(logits, classes, "raw")
    guess, margin = logits.argmax(dim=1).double(), raw[:, 0] - raw[:, 1]
    return torch.cat([guess.unsqueeze(1), margin.unsqueeze(1), scores, chances], dim=1)
