"""SparseFool: to the boundary that DeepFool finds, by as few elements as the box allows.

Modas, Moosavi-Dezfooli, Frossard: SparseFool: a few pixels make a big difference. CVPR 2019.

    r       = DeepFool's way from x_i over the boundary, class k reached
    w       = grad (f_k - f_y) at x_i + r, of length one
    x_{i+1} = a point of the plane  w . z = w . (x_i + lambda * r)  in the box: the elements of
              largest |w| go to their ends of the box, the last of them as far as is needed
    stop where  clip(x + (1 + overshoot) * (x_{i+1} - x))  fools

The elements before the last are those whose gains ``|w| * room``, added up in the order of ``|w|``,
do not reach the plane (``to_plane``): one sort and one cumulative sum, where the authors' code
takes a step in Python per element. A round costs two forward passes and a backward pass per rival
class for every step of DeepFool (``cross``; usually two to five), and two more forward passes and
one more backward pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick.attacks.card import Attack, Card
from pinprick.parts.box import into_ball, keep_allowed
from pinprick.parts.rivals import nearest_boundary, rivals_of
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.types import Images, Labels, Logits, PerImage

_SHORTEST = 1e-4  # length of a step at least
_BEYOND = 1e-3  # how far behind the plane the last element aims
_LEAST_MOVE = 1e-4  # the least that the last element moves


@dataclass(frozen=True, kw_only=True)
class SparseFool(Attack):
    """The elements that count most for DeepFool's boundary, as far as the box lets them go.

    Attributes:
        lam: How far behind DeepFool's boundary the plane is put, ``lambda``: 1 on it, more for
            fewer rounds and more elements.
        steps: Number of rounds per image at most.
        overshoot: How much further than the plane, and than DeepFool's boundary, is tried.
        eps: The most that a value may change, where pixel values run from 0 to 1.
        candidates: Number of classes that DeepFool considers, with the label.
        deepfool_steps: The most steps of DeepFool in a round.
    """

    card: ClassVar[Card] = Card(
        name="sparsefool",
        title="SparseFool",
        norm="l0",
        unit="elements",
        kind="minimal",
        access="gradients",
        targeted=False,
        masked=True,
        paper="arXiv:1811.02248",
        differences=(
            "DeepFool stays in the box and in the mask too. The authors work in normalised space, "
            "where channels have other weights.",
            "The label is always that of the goal, even if `x_i` has crossed the boundary.",
            "If DeepFool does not cross the boundary, the nearest class is used. The authors' "
            "code divides zero by zero and stops moving.",
            "If the plane lies behind `x_i`, a plane as far ahead replaces it. The authors' code "
            "continues until every element has changed.",
            "Elements are counted, because the attack chooses elements. The paper reports pixels.",
        ),
    )

    lam: float = setting(3.0, least=1)
    steps: int = setting(20, least=1)
    overshoot: float = setting(0.02, least=0, below=1)
    eps: float = pixel_distance(1.0)
    candidates: int = setting(10, least=2)
    deepfool_steps: int = setting(50, least=1)

    def facts(self) -> Card:
        return replace(
            self.card,
            max_forwards=self.steps * (2 * self.deepfool_steps + 2),
            max_backwards=self.steps * ((self.candidates - 1) * self.deepfool_steps + 1),
        )

    def __call__(self, problem: Problem) -> Images:
        found, adv = problem.images.clone(), problem.images.clone()
        rows = torch.arange(len(adv), device=adv.device)  # images still on their way
        for _ in range(self.steps):
            part, x = problem[rows], adv[rows]
            across, reached = cross(
                part, x, self.candidates - 1, self.deepfool_steps, self.overshoot
            )
            normal = part.gradient(across, logit_difference(reached, part.goal.labels))
            normal = keep_allowed(normal, torch.zeros_like(normal), part.allowed)
            low = into_ball(torch.zeros_like(x), part.images, self.eps)
            high = into_ball(torch.ones_like(x), part.images, self.eps)
            adv[rows] = moved = to_plane(x, normal, self.lam * (across - x), low, high)
            further = part.images + (1 + self.overshoot) * (moved - part.images)
            candidates = into_ball(further, part.images, self.eps)
            stuck = (moved == x).flatten(1).all(dim=1)  # the next round would be the same
            rows, part, candidates = rows[~stuck], part[~stuck], candidates[~stuck]
            if not len(rows):
                break
            met = part.goal.met(part.logits(candidates))
            found[rows[met]] = candidates[met]
            rows = rows[~met]
            if not len(rows):
                break
        return found


def cross(
    problem: Problem, images: Images, number: int, steps: int, overshoot: float
) -> tuple[Images, Labels]:
    """Points on the boundary that DeepFool finds, and the classes behind it.

    Args:
        problem: The images, and the labels to leave.
        images: Where each starts.
        number: Number of rival classes considered.
        steps: The most steps.
        overshoot: How much further than the boundary is tried.
    """
    points, reached = images.clone(), torch.zeros_like(problem.goal.labels)
    rows = torch.arange(len(images), device=images.device)
    rivals: Tensor | int = number
    for _ in range(steps):
        part, x = problem[rows], points[rows]
        near = nearest_boundary(part, x, rivals, "l2")
        reached[rows] = rivals_of(near.logits, part.goal.labels, 1)[:, 0]
        free = near.distance.isfinite()
        length = near.distance.clamp_min(_SHORTEST).view(-1, 1, 1, 1)
        moved = (x + length * near.direction)[free].clamp(0, 1)
        rows, part, rivals = rows[free], part[free], near.rivals[free]
        if not len(rows):
            break
        points[rows] = moved
        further = images[rows] + (1 + overshoot) * (moved - images[rows])
        logits = part.logits(further.clamp(0, 1))
        reached[rows] = rivals_of(logits, part.goal.labels, 1)[:, 0]
        short = ~part.goal.met(logits)
        rows, rivals = rows[short], rivals[short]
        if not len(rows):
            break
    return points, reached


def logit_difference(reached: Labels, labels: Labels) -> Callable[[Logits], PerImage]:
    """The logit of the class that was reached minus that of the label."""

    def difference(logits: Logits) -> PerImage:
        ahead, own = logits.gather(1, torch.stack((reached, labels), dim=1)).unbind(dim=1)
        return ahead - own

    return difference


def to_plane(images: Images, normal: Images, way: Images, low: Images, high: Images) -> Images:
    """The images moved to the plane through ``images + way``, by the elements of largest normal.

    This is SparseFool's linear solver in closed form: as few elements as the box allows. An image
    without a way stays as it is. If the box ends before the plane, everything goes to the end of
    the box.
    """
    precise = torch.promote_types(images.dtype, torch.float32)  # long sums need that much
    x, slope, way, low, high = (v.to(precise).flatten(1) for v in (images, normal, way, low, high))
    size = slope.square().sum(dim=1, keepdim=True).sqrt()
    slope = slope / torch.where(size > 0, size, 1)
    gap = (slope * way).sum(dim=1, keepdim=True).abs()  # ahead, even if the plane is behind
    weight, order = slope.abs().sort(dim=1, descending=True, stable=True)
    start = x.gather(1, order)
    sign = slope.gather(1, order).sign()
    edge = torch.where(slope > 0, high, low).gather(1, order)
    room = (edge - start).abs()
    closed = F.pad((weight * room).cumsum(dim=1), (1, -1))  # by all elements before this one
    needed = ((gap + _BEYOND - closed) / weight).clamp_min(_LEAST_MOVE)
    end = torch.where(needed < room, start + sign * needed, edge)
    end = torch.where((closed < gap) & (weight > 0), end, start)
    return torch.empty_like(x).scatter_(1, order, end).view_as(images).to(images.dtype)
