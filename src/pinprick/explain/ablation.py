"""What a group does at the two ends: taken from the adversarial image, put into the clean one.

    removed:   O_g = s_y(x' - delta_g) - s_y(x')     L_g = s_t(x') - s_t(x' - delta_g)
    inserted:  O_g = s_y(x) - s_y(x + delta_g)       L_g = s_t(x + delta_g) - s_t(x)

Their mean is the two-sided ablation. It is causal and cheap, two passes a group, but does not add
up: where groups need one another, removal gives each the whole effect and insertion none, and
where one would do for all it is the other way round.
"""

from dataclasses import dataclass

import torch

from pinprick.explain.coalitions import Coalitions
from pinprick.explain.shapley import Effects


@dataclass(frozen=True)
class Ablation:
    """The obscuring and the leading effect of each group, by removal and by insertion."""

    removed: Effects
    inserted: Effects

    @property
    def both(self) -> Effects:
        return (self.removed + self.inserted) / 2


def ablate(coalitions: Coalitions) -> Ablation:
    """Both sides for all groups of all images."""
    everything = coalitions.everything
    number = torch.eye(coalitions.groups.most, dtype=torch.bool, device=everything.device)
    which, group = everything.nonzero(as_tuple=True)
    alone, rest = number[group], everything[which] & ~number[group]
    asked = coalitions.pushes(which.repeat(2), torch.cat([alone, rest]))
    inserted, removed = asked.split(len(which))
    clean, adversarial = coalitions.ends
    effects = asked.new_zeros(2, len(coalitions), coalitions.groups.most, 2)
    effects[0, which, group] = adversarial[which] - removed
    effects[1, which, group] = inserted - clean[which]
    return Ablation(removed=effects[0], inserted=effects[1])
