"""Results of attacks that never ran, of which every number is known."""

import math

import torch
from test_result import result_of

from pinprick import AttackResult, Goal


def attacked(
    *pixels: float, name: str = "pin", seed: int = 0, wrong: int = 0, seconds: float = 2.0
) -> AttackResult:
    """One image per number of changed pixels, in one channel of three; infinity is a failure.

    The last ``wrong`` images are misclassified before the attack.
    """
    images = torch.zeros(len(pixels), 3, 4, 5)
    adv = images.clone()
    for row, count in enumerate(pixels):
        if math.isfinite(count):
            adv[row, 0].view(-1)[: int(count)] = 1.0
    labels = torch.zeros(len(pixels), dtype=torch.long)
    labels[len(pixels) - wrong :] = 1
    return result_of(
        images,
        adv,
        goal=Goal(labels),
        attack={"name": name},
        model="net",
        seed=seed,
        seconds=seconds,
    )
