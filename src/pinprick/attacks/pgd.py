"""PGD: I-FGSM from random starts, the best of several for each image.

Madry, Makelov, Schmidt, Tsipras, Vladu: Towards deep learning models resistant to adversarial
attacks. ICLR 2018.

    x_0     = project(x + U(-eps, eps))
    x_{t+1} = project(x_t - a * sign(grad L(f(x_t))))

``L`` falls as the goal comes nearer and ``project`` goes back to [x - eps, x + eps] and [0, 1].
A restart that meets the goal is kept; until there is one, that of the lowest loss. One forward and
one backward pass per step. With several restarts each takes one more forward pass at its end, and
images that meet the goal take no part in later ones.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from pinprick.attacks.card import Attack, Card
from pinprick.goal import Goal
from pinprick.parts.box import into_ball, keep_allowed, signed_step
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.types import Images, Logits, PerImage


@dataclass(frozen=True, kw_only=True)
class PGD(Attack):
    """Signed gradient steps from random starts inside an l-infinity ball.

    Attributes:
        eps: Radius of the ball, where pixel values run from 0 to 1.
        steps: Number of gradient steps of a restart.
        step_size: Length of one step, ``a``; None for ``eps / steps``.
        restarts: Random starts per image at most.
        loss: What is brought down, "cross_entropy" or "margin", the gap between logits.
    """

    card: ClassVar[Card] = Card(
        name="pgd",
        title="PGD",
        norm="linf",
        kind="budget",
        access="gradients",
        targeted=True,
        masked=True,
        random=True,
        paper="arXiv:1706.06083",
        differences=(
            "The margin loss is the margin of the logits. The authors' is `-relu(margin + 50)`, "
            "which is constant for margins below -50.",
        ),
    )

    eps: float = pixel_distance(8 / 255)
    steps: int = setting(20, least=1)
    step_size: float | None = pixel_distance(2 / 255)
    restarts: int = setting(1, least=1)
    loss: Literal["cross_entropy", "margin"] = "cross_entropy"

    def facts(self) -> Card:
        verdict = self.restarts > 1
        return replace(
            self.card,
            max_forwards=self.restarts * (self.steps + verdict),
            max_backwards=self.restarts * self.steps,
        )

    def __call__(self, problem: Problem) -> Images:
        if self.restarts == 1:
            return self._descend(problem, restart=0)
        best = problem.images.clone()
        lowest = best.new_full((len(best),), torch.inf)
        rows = torch.arange(len(best), device=best.device)  # images not yet fooled
        for restart in range(self.restarts):
            part = problem[rows]
            adv = self._descend(part, restart)
            logits = part.logits(adv)
            met = part.goal.met(logits)
            loss = self._loss(part.goal)(logits).to(lowest.dtype).nan_to_num(nan=torch.inf)
            better = met | (loss <= lowest[rows])
            best[rows] = torch.where(better.view(-1, 1, 1, 1), adv, best[rows])
            lowest[rows] = torch.where(better, loss, lowest[rows])
            rows = rows[~met]
            if not len(rows):
                break
        return best

    def _descend(self, problem: Problem, restart: int) -> Images:
        """The last image of one descent from a random start."""
        step_size = self.eps / self.steps if self.step_size is None else self.step_size
        images, loss = problem.images, self._loss(problem.goal)
        draw = problem.rng.uniform(*images.shape[1:], step=restart, use="pgd start")
        adv = into_ball(images + self.eps * (2 * draw.to(images.dtype) - 1), images, self.eps)
        adv = keep_allowed(adv, images, problem.allowed)
        for _ in range(self.steps):
            grad = problem.gradient(adv, loss)
            adv = signed_step(problem, adv, grad, step_size, self.eps)
        return adv

    def _loss(self, goal: Goal) -> Callable[[Logits], PerImage]:
        return goal.margin if self.loss == "margin" else goal.cross_entropy
