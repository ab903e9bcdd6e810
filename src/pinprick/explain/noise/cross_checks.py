"""Two further definitions of a group's effect, to check its Shapley value against.

**Ablation** looks at the two ends: the group removed from the adversarial image, and the group
inserted into the clean one.

    removed:   O_g = s_y(x' - delta_g) - s_y(x')     L_g = s_t(x') - s_t(x' - delta_g)
    inserted:  O_g = s_y(x) - s_y(x + delta_g)       L_g = s_t(x + delta_g) - s_t(x)

Their mean is the two-sided ablation. It is causal and costs two passes per group. Its effects do
not add up to the whole change. Where groups work only together, removal gives each of them the
whole effect and insertion gives none. Where one group suffices, the opposite holds.

**The path integral** follows the straight path from clean to adversarial.

    O_i = -delta_i * integral of ds_y/dx_i (x + u delta) du      L_i = the same of s_t, with a plus

Elements are summed over each group. A point costs one forward and two backward passes. Images on
the path have pixels at partial strength, which no attack made.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from pinprick.explain.class_scores import class_scores
from pinprick.explain.noise.coalitions import Coalitions, Effects
from pinprick.explain.noise.groups import Groups
from pinprick.explain.path_integral import Integral, PathFractions, Products, Rows, integrate
from pinprick.types import Logits


@dataclass(frozen=True)
class Ablation:
    """The obscuring and the leading effect of each group, by removal and by insertion."""

    removed: Effects
    inserted: Effects

    @property
    def both(self) -> Effects:
        """The mean of removal and insertion."""
        return (self.removed + self.inserted) / 2


def ablate(coalitions: Coalitions) -> Ablation:
    """Remove and insert every group of every image."""
    everything = coalitions.everything
    number = torch.eye(coalitions.groups.most, dtype=torch.bool, device=everything.device)
    which, group = everything.nonzero(as_tuple=True)
    alone, rest = number[group], everything[which] & ~number[group]
    values = coalitions.values(which.repeat(2), torch.cat([alone, rest]))
    inserted, removed = values.split(len(which))
    clean, adversarial = coalitions.end_values
    effects = values.new_zeros(2, len(coalitions), coalitions.groups.most, 2)
    effects[0, which, group] = adversarial[which] - removed
    effects[1, which, group] = inserted - clean[which]
    return Ablation(removed=effects[0], inserted=effects[1])


def path_effects(
    coalitions: Coalitions, *, steps: int = 24, max_steps: int = 216, gap: float = 0.02
) -> Integral:
    """The obscuring and the leading effect of each group along the path.

    Args:
        coalitions: The images and their groups.
        steps: Points in the first round.
        max_steps: Most points per path, whatever the error.
        gap: Largest accepted error, as a share of the change of the margin.
    """
    groups = coalitions.groups

    def products(rows: Rows, fractions: PathFractions) -> Products:
        part, adversarial = coalitions.problem[rows], coalitions.adversarial[rows]
        delta = adversarial - part.images
        classes = coalitions.classes[rows]

        def scores(logits: Logits) -> Float[Tensor, "some 2"]:
            return class_scores(logits, classes, coalitions.gauge)

        _, gradients = part.logits_and_gradients(
            part.images + fractions.to(delta.dtype).view(-1, 1, 1, 1) * delta, scores
        )
        own = Groups(groups.index[rows], groups.count[rows])
        effects = coalitions.totals.new_zeros(len(rows), groups.most, 2)
        for side, gradient in enumerate(gradients):
            effect = own.total((gradient * delta).sum(dim=1))
            effects[:, : effect.shape[1], side] = (-1.0, 1.0)[side] * effect
        return effects

    return integrate(
        products,
        coalitions.totals,
        groups.most,
        (groups.count > 0).nonzero().squeeze(1),
        steps=steps,
        max_steps=max_steps,
        gap=gap,
        block=coalitions.block,
    )
