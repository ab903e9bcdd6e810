"""Which images stay correct under an attack, and under the worst case over several.

Robust accuracy by one attack is an upper bound. A second attack is run on what the first one left,
so the worst case costs little more than the first.
"""

import torch
from torch import Tensor

from pinprick.attacks.card import Attack
from pinprick.attacks.pgd import PGD
from pinprick.metrics.unit import Unit, check_unit
from pinprick.model import Classifier
from pinprick.result import join
from pinprick.run import attack_batches
from pinprick.types import Images, Labels, Mask


def stay_correct(
    attack: Attack,
    model: Classifier,
    images: Images,
    labels: Labels,
    *,
    among: Mask | None = None,
    k: int | None = None,
    unit: Unit = "elements",
    ids: Tensor | None = None,
    seed: int = 0,
    batch_size: int | None = None,
) -> Mask:
    """Which images are correct and stay so under ``attack``.

    Args:
        attack: What to run.
        model: The model.
        images: Images in [0, 1].
        labels: The true class of each.
        among: The images to attack; the others count as fooled. None for all.
        k: Only changes of at most so many units count as fooling; None for any.
        unit: Whether ``k`` counts "elements" or "pixels".
        ids: A number per image, which its random stream belongs to.
        seed: Of the random streams.
        batch_size: Images per batch; None to choose by their size.
    """
    check_unit(unit)
    every = torch.ones(len(images), dtype=torch.bool, device=images.device)
    kept = every if among is None else among.clone()
    rows = kept.nonzero().squeeze(1)
    if not len(rows):
        return kept
    numbers = torch.arange(len(images), device=images.device) if ids is None else ids
    batches = attack_batches(
        attack,
        model,
        images[rows],
        labels[rows],
        ids=numbers[rows],
        seed=seed,
        batch_size=batch_size,
    )
    result = join(list(batches))
    needed = result.needed_elements if unit == "elements" else result.needed_pixels
    kept[rows] = ~result.success if k is None else needed > k
    return kept


def plain_pgd(eps: float, steps: int = 20, step_size: float | None = None) -> PGD:
    """PGD as it is commonly reported: cross-entropy, one random start, steps of ``eps / 4``."""
    return PGD(eps=eps, steps=steps, step_size=eps / 4 if step_size is None else step_size)


def strong_pgd(eps: float, steps: int = 50, restarts: int = 5) -> PGD:
    """A stronger one: the margin in place of the cross-entropy, more and shorter steps, restarts.

    The margin has a gradient also where the softmax is saturated and the cross-entropy has none.
    """
    return PGD(eps=eps, steps=steps, step_size=eps / 8, restarts=restarts, loss="margin")
