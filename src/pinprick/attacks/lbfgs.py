"""L-BFGS: the smallest change for which the penalised loss has its minimum where the goal is met.

Szegedy, Zaremba, Sutskever, Bruna, Erhan, Goodfellow, Fergus: Intriguing properties of neural
networks. ICLR 2014.

    minimise  c * |r|_2^2 + L(f(x + r))   subject to  x + r in [0, 1]

by L-BFGS in the box, for the ``c`` on the edge between minima that meet the goal and minima that do
not, found image by image: tenfold steps until both kinds have been seen, then halving on the
scale of logarithms. The smallest image of all that met the goal is returned. A forward and a
backward pass a step, and a forward pass more at the end of each search.

``L`` is the cross-entropy to the target, as in the paper, which has no untargeted form. Without a
target it is ``log(1 + exp(margin))``, the cross-entropy between the label and its strongest rival.
Minus the cross-entropy to the label would not do: it is flat where the network is sure and falls
for ever beyond the boundary, so its minima stay at the clean image or run to the edge of the box.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch
from torch.nn import functional as F

from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
from pinprick.goal import Goal
from pinprick.parts.best import Best
from pinprick.parts.quasi_newton import Points, minimise_in_box
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Logits, Mask, PerImage


@dataclass(frozen=True, kw_only=True)
class LBFGS(Attack):
    """Box-constrained L-BFGS on a penalised loss, with a search for the penalty.

    Attributes:
        penalty: Where the search for ``c`` begins.
        searches: How many values of ``c`` are tried for each image.
        steps: Most gradients that L-BFGS asks for with one ``c``.
    """

    card: ClassVar[Card] = Card(
        name="lbfgs",
        title="L-BFGS",
        norm="l2",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:1312.6199",
        differences=(
            "The norm is squared, so that the objective is smooth at the clean image.",
            "The paper prints the least `c`. As `c` stands on the norm, the largest that still "
            "fools is meant, and is sought here.",
            "Every image on the way is judged, not only the minima.",
            "Each search begins at the last minimum.",
            "Points lie on a grid of 2^-22, so that the last bit of the network's answer, which "
            "depends on the batch size, does not grow into another search.",
            "The paper has no untargeted form. Here it is the cross-entropy between the label "
            "and its strongest rival.",
        ),
    )

    penalty: float = 1.0
    searches: int = 10
    steps: int = 30

    def __post_init__(self) -> None:
        if not 0 < self.penalty < torch.inf:
            raise BadInput(f"lbfgs needs penalty > 0, got {self.penalty:g}")
        if self.searches < 1 or self.steps < 2:
            raise BadInput(
                f"lbfgs needs searches >= 1 and steps >= 2, got {self.searches} and {self.steps}"
            )

    def facts(self) -> Card:
        return replace(
            self.card,
            max_forwards=self.searches * (self.steps + 1),
            max_backwards=self.searches * self.steps,
        )

    def __call__(self, problem: Problem) -> Images:
        images, best = problem.images, Best(problem.images)
        low, high = (-images).flatten(1), (1 - images).flatten(1)
        if problem.allowed is not None:
            low, high = (edge * problem.allowed.flatten(1) for edge in (low, high))
        penalty = torch.full_like(best.cost, self.penalty)

        def ask(delta: Points, rows: Labels) -> tuple[PerImage, Points]:
            """The function to minimise and its gradient, for some of the images."""
            part, adv = problem[rows], _add(images[rows], delta)
            loss = partial(_loss, part.goal)
            logits, grad = part.logits_and_gradient(adv, loss)
            size, weight = delta.square().sum(dim=1), penalty[rows]
            _offer(best, rows, adv, size, part.goal.met(logits))
            value = loss(logits).to(size.dtype) + weight * size
            return value, grad.flatten(1) + 2 * weight.unsqueeze(1) * delta

        works, fails = torch.zeros_like(penalty), torch.full_like(penalty, torch.inf)
        delta = torch.zeros_like(low)
        for _ in range(self.searches):
            delta = minimise_in_box(ask, delta, low, high, scale=0.5 / penalty, tries=self.steps)
            met = problem.goal.met(problem.logits(_add(images, delta)))
            works, fails = torch.where(met, penalty, works), torch.where(met, fails, penalty)
            between = torch.where(works == 0, fails / 10, (works * fails).sqrt())
            penalty = torch.where(fails.isinf(), works * 10, between)
        return best.images


def _add(images: Images, delta: Points) -> Images:
    return (images + delta.view_as(images)).clamp(0, 1)


def _offer(best: Best, rows: Labels, adv: Images, size: PerImage, met: Mask) -> None:
    """Offer what was found for some of the images."""
    everywhere = torch.zeros_like(best.cost, dtype=torch.bool).index_copy(0, rows, met)
    best.offer(
        best.images.index_copy(0, rows, adv), best.cost.index_copy(0, rows, size), everywhere
    )


def _loss(goal: Goal, logits: Logits) -> PerImage:
    return F.softplus(goal.margin(logits)) if goal.targets is None else goal.cross_entropy(logits)
