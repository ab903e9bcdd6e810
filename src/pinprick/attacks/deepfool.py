"""DeepFool: step to the nearest class boundary of the linearised network, again and again.

Moosavi-Dezfooli, Fawzi, Frossard: DeepFool: a simple and accurate method to fool deep neural
networks. CVPR 2016.

    w_k = grad f_k - grad f_y,    gap_k = f_y - f_k,    l = argmin_k  gap_k / |w_k|_q
    r   = (gap_l / |w_l|_2) * w_l / |w_l|_2         l2    (q = 2)
    r   = (gap_l / |w_l|_1) * sign(w_l)             linf  (q = 1)
    x_{t+1} = clip(x_t + (1 + overshoot) * (r made longer by 1e-4))

over the ``k`` that had the highest logits for the clean image, until the label changes. Two forward
passes a step, the second to see whether it fooled, and a backward pass for each rival class.

Differs from the paper: the image stays in [0, 1] and changes only where it is allowed to, so values
that stand at the edge of the box and would leave it are taken out of ``w``; where nothing is left,
the image is given up. The length 1e-4 on top of each step is that of the authors' code. The label
left is the one of the goal, which is the predicted one for every image that reaches an attack.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
from pinprick.parts.aim import rivals as nearest_rivals
from pinprick.parts.box import keep_allowed
from pinprick.parts.choice import check_choice
from pinprick.problem import Problem
from pinprick.types import Images, Logits, PerImage

_EXTRA = 1e-4  # length added to each step, so that none ends short of the boundary


@dataclass(frozen=True, kw_only=True)
class DeepFool(Attack):
    """Steps to the nearest boundary of the linearised network, until the label changes.

    Attributes:
        norm: What is kept small, "l2" or "linf".
        steps: Give up on an image after this many.
        candidates: How many classes are looked at, the label among them; those ranked highest.
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
    )

    norm: Literal["l2", "linf"] = "l2"
    steps: int = 50
    candidates: int = 10
    overshoot: float = 0.02

    def __post_init__(self) -> None:
        check_choice("deepfool", "norm", self.norm, ("l2", "linf"))
        if self.steps < 1 or self.candidates < 2:
            raise BadInput(
                "deepfool needs steps >= 1 and candidates >= 2, "
                f"got {self.steps} and {self.candidates}"
            )
        if not 0 <= self.overshoot < 1:
            raise BadInput(f"deepfool needs overshoot from 0 to below 1, got {self.overshoot:g}")

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
        rivals = rows.new_empty((len(adv), 0))  # the classes to look at, one row an image
        for step in range(self.steps):
            part, x = problem[rows], adv[rows].requires_grad_()
            with torch.enable_grad():
                logits = part.logits(x)
            if step == 0:
                rivals = nearest_rivals(logits, part.goal.labels, self.candidates - 1)
            distance, direction = self._nearest(part, x, logits, rivals[rows])
            length = (1 + self.overshoot) * (distance + _EXTRA)
            free = distance.isfinite()  # the others have nowhere to go and are given up
            rows, part = rows[free], part[free]
            if not len(rows):
                break
            moved = x.detach() + length.view(-1, 1, 1, 1) * direction
            adv[rows] = moved[free].clamp(0, 1)
            met = part.goal.met(part.logits(adv[rows]))
            found[rows[met]] = adv[rows[met]]
            rows = rows[~met]
            if not len(rows):
                break
        return found

    def _nearest(
        self, problem: Problem, images: Images, logits: Logits, rivals: Tensor
    ) -> tuple[PerImage, Images]:
        """How far the nearest boundary is to first order, and a step of length one towards it.

        The distance is infinite where no boundary can be approached inside the box.
        """
        if not logits.requires_grad:
            raise BadInput("the model passes no gradient back; deepfool cannot do without")
        with torch.enable_grad():
            leads = logits.gather(1, rivals) - logits.gather(1, problem.goal.labels.unsqueeze(1))
        distance = images.new_full((len(images),), torch.inf)
        direction = torch.zeros_like(images)
        for lead in leads.unbind(dim=1):
            (slope,) = torch.autograd.grad(lead.sum(), images, retain_graph=True)
            slope = _movable(slope.nan_to_num(0.0, 0.0, 0.0), problem, images.detach())
            if self.norm == "l2":
                size = slope.flatten(1).square().sum(dim=1).sqrt()
                towards = slope / size.view(-1, 1, 1, 1)
            else:
                size = slope.flatten(1).abs().sum(dim=1)
                towards = slope.sign()
            away = lead.detach().abs().to(size.dtype) / size
            nearer = (size > 0) & (away < distance)  # never so where it is not a number
            distance = torch.where(nearer, away, distance)
            direction = torch.where(nearer.view(-1, 1, 1, 1), towards, direction)
        return distance, direction


def _movable(slope: Images, problem: Problem, images: Images) -> Images:
    """``slope`` where a step along it stays in the box and the mask, 0 elsewhere."""
    inside = torch.where(slope > 0, images < 1, images > 0)
    return keep_allowed(slope * inside, torch.zeros_like(slope), problem.allowed)
