"""Models that were frozen for one batch size, asked about any number of images."""

from collections.abc import Callable

import torch
from torch import Tensor

from pinprick.types import Images, Logits


def in_batches(call: Callable[[Tensor], Tensor], images: Images, count: int) -> Logits:
    """What ``call`` says of all images, ``count`` at a time; the last are filled up."""
    answers = []
    for part in images.split(count):
        filler = images.new_zeros(count - len(part), *images.shape[1:])
        answers.append(call(torch.cat([part, filler]))[: len(part)])
    return torch.cat(answers)
