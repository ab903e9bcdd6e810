"""The margin as groups are added one by one.

The order is stated: the largest Shapley effect on the margin first, equal ones by their numbers.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pinprick.explain.coalitions import Chosen, Coalitions
from pinprick.explain.shapley import Effects
from pinprick.explain.states import States, states
from pinprick.types import Logits


@dataclass(frozen=True)
class Build:
    """From clean to adversarial, a group at a time.

    Attributes:
        order: Numbers of the groups as they are added; those that an image lacks come last.
        states: What the model says before the first group and after each; what would come after an
            image's last group is the adversarial image again.
    """

    order: Int[Tensor, "batch group"]
    states: Float[Tensor, "batch stage 6"]


def add_one_by_one(coalitions: Coalitions, effects: Effects) -> Build:
    """Ask about every stage of every image that lies between clean and adversarial."""
    count, most = coalitions.groups.count, coalitions.groups.most
    worth = effects.sum(dim=2).masked_fill(~coalitions.everything, -torch.inf)
    order = worth.argsort(dim=1, descending=True, stable=True)
    rank = order.argsort(dim=1)
    stage = torch.arange(1, most, device=count.device)
    members = rank.unsqueeze(1) < stage.view(1, -1, 1)
    asked = stage < count.unsqueeze(1)
    rows = torch.arange(len(count), device=count.device)
    clean, adversarial = (_states(coalitions, logits, rows) for logits in coalitions.end_logits)
    stages = adversarial.unsqueeze(1).repeat(1, most + 1, 1)
    stages[:, 0] = clean
    which = rows.unsqueeze(1).expand_as(asked)[asked]
    if len(which):
        logits = coalitions.logits(which, members[asked])
        stages[:, 1:most][asked] = _states(coalitions, logits, which)
    return Build(order, stages)


def _states(coalitions: Coalitions, logits: Logits, rows: Chosen) -> States:
    return states(logits, coalitions.classes[rows], coalitions.gauge)
