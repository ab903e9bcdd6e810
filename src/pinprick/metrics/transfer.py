"""Transfer: do adversarial images of one model fool another?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pinprick.metrics.fooling_rates import Share

Classes = NDArray[np.int64]


@dataclass(frozen=True)
class Transfer:
    """One source and one victim.

    Attributes:
        fooled: Of the images that both models classify correctly, those whose adversarial image
            fools the victim. Images on which the attack failed on its source count as well.
        floor: Of the images that the source classifies correctly, those that the victim
            misclassifies without any attack. A rate that is not restricted to images which both
            classify correctly would count them as success.
    """

    fooled: Share
    floor: Share


def transfer(
    source_correct: NDArray[np.bool_],
    labels: Classes,
    targets: Classes | None,
    victim_clean: Classes,
    victim: Classes,
) -> Transfer:
    """The transfer to one victim; all arrays have one entry per image.

    Args:
        source_correct: Which clean images the source classifies correctly.
        labels: The labels.
        targets: The target classes; None for untargeted.
        victim_clean: Predictions of the victim for the clean images.
        victim: Predictions of the victim for the adversarial images.
    """
    both = source_correct & (victim_clean == labels)
    met = victim != labels if targets is None else victim == targets
    correct = int(source_correct.sum())
    return Transfer(
        fooled=Share(int((met & both).sum()), int(both.sum())),
        floor=Share(correct - int(both.sum()), correct),
    )
