"""Greedy: push one pixel after another to the edge of the box until the goal is met.

The plainest sparse attack, and the yardstick for the others. A step takes the pixel whose push to
the edge promises the largest fall of the margin,

    gain = sum_c  g_c * (x_c - edge_c),    edge_c = 1 where g_c < 0, else 0,

``g`` the gradient of the margin. One forward and one backward pass a pixel, and one more of each at
the end: the pass for the next gradient is also the one that shows whether the last push fooled.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from pinprick.attacks.card import Attack, Card
from pinprick.parts.box import keep_allowed
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class Greedy(Attack):
    """One pixel per step: the one whose move to the edge of the box should gain most.

    Attributes:
        max_pixels: Give up on an image after this many pixels.
    """

    card: ClassVar[Card] = Card(
        name="greedy",
        title="Greedy pixels",
        norm="l0",
        unit="pixels",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="",
    )

    max_pixels: int = setting(500, least=1)

    def facts(self) -> Card:
        return replace(self.card, max_forwards=self.max_pixels + 1, max_backwards=self.max_pixels)

    def __call__(self, problem: Problem) -> Images:
        found, adv = problem.images.clone(), problem.images.clone()
        free = torch.ones_like(adv[:, 0], dtype=torch.bool)  # pixels not yet touched
        rows = torch.arange(len(adv), device=adv.device)  # images still on their way
        for _ in range(self.max_pixels):
            part, x = problem[rows], adv[rows]
            logits, grad = part.logits_and_gradient(x, part.goal.margin)
            met = part.goal.met(logits)
            found[rows[met]] = x[met]
            edge = (grad < 0).to(x.dtype)  # 1 where more light helps, 0 where less does
            edge = keep_allowed(torch.where(grad == 0, x, edge), x, part.allowed)
            gain = (grad * (x - edge)).sum(dim=1)  # promised fall of the margin
            gain = gain.masked_fill(~free[rows], -torch.inf).flatten(1)
            most, place = gain.max(dim=1, keepdim=True)
            pixel = torch.zeros_like(gain, dtype=torch.bool)
            pixel = pixel.scatter(1, place, True).view_as(free[rows])
            adv[rows] = torch.where(pixel.unsqueeze(1), edge, x)
            free[rows] &= ~pixel
            rows = rows[~met & (most > 0).squeeze(1)]  # without a gain nothing would change again
            if not len(rows):
                return found
        part = problem[rows]
        met = part.goal.met(part.logits(adv[rows]))  # the last push was not looked at yet
        found[rows[met]] = adv[rows[met]]
        return found
