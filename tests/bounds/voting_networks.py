"""Small networks that vote, and one whose answer to any change is known."""

import torch
from torch import Tensor, nn

from pinprick import Classifier
from pinprick.zoo.card import Ablation
from pinprick.zoo.voting import VotingNetwork


class SeesLight(nn.Module):
    """Class 1 where a seen pixel is light, class 0 elsewhere; for one channel."""

    def forward(self, seen: Tensor) -> Tensor:
        light = seen[:, 0].flatten(1).amax(dim=1)
        return torch.stack((0.5 - light, light - 0.5), dim=1)


def linear_votes(
    shape: tuple[int, int, int] = (1, 2, 3),
    *,
    kept: int = 2,
    draws: int = 12,
    classes: int = 3,
    seed: int = 0,
) -> VotingNetwork:
    """Votes of a linear network with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        base = nn.Sequential(nn.Flatten(), nn.Linear(2 * torch.Size(shape).numel(), classes))
    return VotingNetwork(base, shape, Ablation(kept=kept, draws=draws, seed=seed))


def as_model(net: VotingNetwork) -> Classifier:
    return Classifier(net, access="gradients", name="votes")
