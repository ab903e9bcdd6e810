"""DeepFool: step to the nearest class boundary of the linearised network, again and again.

Moosavi-Dezfooli, Fawzi, Frossard: DeepFool: a simple and accurate method to fool deep neural
networks. CVPR 2016.

    w_k = grad f_k - grad f_y,    gap_k = f_y - f_k,    l = argmin_k  gap_k / |w_k|_q
    r   = (gap_l / |w_l|_2) * w_l / |w_l|_2         l2    (q = 2)
    r   = (gap_l / |w_l|_1) * sign(w_l)             linf  (q = 1)
    x_{t+1} = clip(x_t + (1 + overshoot) * (r made longer by 1e-4))

over the ``k`` that had the highest logits for the clean image, until the label changes. Two forward
passes per step, the second to see whether it fooled, and a backward pass per rival class.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.parts.rivals import nearest_boundary
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images

_EXTRA = 1e-4  # length added to each step, so that none ends short of the boundary


@dataclass(frozen=True, kw_only=True)
class DeepFool(Attack):
    """Steps to the nearest boundary of the linearised network, until the label changes.

    Attributes:
        norm: What is kept small, "l2" or "linf".
        steps: Number of steps per image at most.
        candidates: Number of classes considered, with the label; those ranked highest.
        overshoot: How much further than the boundary a step goes, as a share of it.
    """

    card: ClassVar[Card] = Card(
        name="deepfool",
        title="DeepFool",
        norm="l2",
        kind="minimal",
        access="gradients",
        targeted=False,
        masked=True,
        paper="arXiv:1511.04599",
        differences=(
            "The image stays in [0, 1] and in the mask. The authors work in normalised space "
            "without a box.",
            "Elements at the edge of the box that would leave it are removed from `w`.",
            "If no element can move, the clean image is returned.",
            "Each step is 1e-4 longer than in the paper, as in the authors' code.",
            "The label is the true one, which equals the prediction for every attacked image.",
        ),
    )

    norm: Literal["l2", "linf"] = "l2"
    steps: int = setting(50, least=1)
    candidates: int = setting(10, least=2)
    overshoot: float = setting(0.02, least=0, below=1)

    def facts(self) -> Card:
        return replace(
            self.card,
            norm=self.norm,
            max_forwards=2 * self.steps,
            max_backwards=(self.candidates - 1) * self.steps,
        )

    def __call__(self, problem: Problem) -> Images:
        found, adv = problem.images.clone(), problem.images.clone()
        rows = torch.arange(len(adv), device=adv.device)  # images still on their way
        rivals: Tensor | int = self.candidates - 1  # later the classes, one row per image
        for _ in range(self.steps):
            part, x = problem[rows], adv[rows]
            near = nearest_boundary(part, x, rivals, self.norm)
            length = (1 + self.overshoot) * (near.distance + _EXTRA)
            free = near.distance.isfinite()  # the others have nowhere to go and are given up
            rows, part, rivals = rows[free], part[free], near.rivals[free]
            if not len(rows):
                break
            moved = x + length.view(-1, 1, 1, 1) * near.direction
            adv[rows] = moved[free].clamp(0, 1)
            met = part.goal.met(part.logits(adv[rows]))
            found[rows[met]] = adv[rows[met]]
            rows, rivals = rows[~met], rivals[~met]
            if not len(rows):
                break
        return found
