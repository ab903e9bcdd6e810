"""What each group does along the straight path from clean to adversarial.

    O_i = -delta_i * integral of ds_y/dx_i (x + u delta) du      L_i the same of s_t, with a plus

summed over the elements of a group. One forward and two backward passes per point. The path leads
through pixels at half strength, which no attack made: a cross-check, not the definition.
"""

from jaxtyping import Float
from torch import Tensor

from pinprick.explain.noise.coalitions import Coalitions
from pinprick.explain.noise.groups import Groups
from pinprick.explain.path import Along, Integral, Products, Rows, class_scores, integrate
from pinprick.types import Logits


def path_effects(
    coalitions: Coalitions, *, steps: int = 24, max_steps: int = 216, gap: float = 0.02
) -> Integral:
    """The obscuring and the leading effect of each group of each image.

    Args:
        coalitions: The images and their groups.
        steps: Points in the first round.
        max_steps: Points at most, whatever is missing.
        gap: What may be missing, as a share of the change of the margin.
    """
    groups = coalitions.groups

    def products(rows: Rows, where: Along) -> Products:
        part, adversarial = coalitions.problem[rows], coalitions.adversarial[rows]
        delta = adversarial - part.images
        classes = coalitions.classes[rows]

        def scores(logits: Logits) -> Float[Tensor, "some 2"]:
            return class_scores(logits, classes, coalitions.gauge)

        _, slopes = part.logits_and_gradients(
            part.images + where.to(delta.dtype).view(-1, 1, 1, 1) * delta, scores
        )
        own = Groups(groups.index[rows], groups.count[rows])
        effects = coalitions.totals.new_zeros(len(rows), groups.most, 2)
        for side, slope in enumerate(slopes):
            effect = own.total((slope * delta).sum(dim=1))
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
