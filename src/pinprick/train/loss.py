"""The loss of a step: cross-entropy where the attack left the images, or the trade-off of TRADES.

Zhang, Yu, Jiao, Xing, El Ghaoui, Jordan: Theoretically Principled Trade-off between Robustness and
Accuracy. ICML 2019.

    CE(f(x), y) + trades * KL(f(x) || f(x'))

Theirs seeks the x' of the largest divergence; here it is whatever the recipe gives.
"""

from torch import Tensor
from torch.nn import functional as F

from pinprick.train.schedule import Schedule
from pinprick.types import Labels


def step_loss(logits: Tensor, labels: Labels, schedule: Schedule) -> Tensor:
    """Mean over the batch; ``logits`` are of the perturbed images, with ``trades`` then the clean.

    Statistics of batch norm, where there are any, are then of both together.
    """
    perturbed, clean = logits[: len(labels)], logits[-len(labels) :]
    loss = F.cross_entropy(clean, labels, label_smoothing=schedule.label_smoothing)
    if schedule.trades is None:
        return loss
    said, asked = clean.log_softmax(dim=1), perturbed.log_softmax(dim=1)
    return loss + schedule.trades * F.kl_div(asked, said, log_target=True, reduction="batchmean")
