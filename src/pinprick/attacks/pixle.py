"""Pixle: copy the pixels of a small rectangle to other places of the image, by scores only.

Pomponi, Scardapane, Uncini: Pixle: a fast and effective black-box attack based on rearranging
pixels. IJCNN 2022.

``y`` is the image so far, at first the clean image ``x``. A try draws a rectangle and a place in
``y`` for each of its pixels:

    y'_place(i) = x_i        for the pixels i of the rectangle, else y' = y

The places are random, or those of the most similar or the most different colour. After ``tries``
of them the one with the lowest probability of the label (or the highest of the target) so far is
the next ``y``. The attack ends at the first try that fools. One forward pass per try, scores alone.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
from pinprick.parts.best import Lowest
from pinprick.parts.box import keep_allowed
from pinprick.parts.largest import find_largest
from pinprick.parts.units import take
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class Pixle(Attack):
    """Copies of a few pixels at other places of the image, kept where they help most.

    Attributes:
        rounds: Number of times that the best try becomes the next image to try from.
        tries: Tries per round; with 1, every try that helps is kept at once.
        least_side: Least width and height of the rectangle.
        most_side: Greatest width and height of the rectangle.
        mapping: Where pixels go: to a "random" place, to that of the nearest other colour
            ("similarity"), or to that of the farthest colour ("distance").
    """

    card: ClassVar[Card] = Card(
        name="pixle",
        title="Pixle",
        norm="l0",
        unit="pixels",
        kind="minimal",
        access="scores",
        targeted=True,
        masked=True,
        random=True,
        paper="arXiv:2202.02236",
        differences=(
            "Tries start from the best image so far. In torchattacks they start from the last try "
            "until one has helped.",
            "Every position of the image can be drawn, the last row and column too. torchattacks "
            "confuses row and column, so its images must be square.",
            "A try costs one query. torchattacks makes two.",
            "If no try fools, the clean image is returned.",
            "Masks are ours. Pixels go to allowed positions only.",
        ),
    )

    rounds: int = setting(20, least=1)
    tries: int = setting(10, least=1)
    least_side: int = setting(2, least=1)
    most_side: int = setting(10, least=1)
    mapping: Literal["random", "similarity", "distance"] = "random"

    def __post_init__(self) -> None:
        if self.least_side > self.most_side:
            raise BadInput(
                f"least_side of pixle must be at most most_side, {self.most_side}, "
                f"got {self.least_side}"
            )

    def facts(self) -> Card:
        return replace(self.card, max_forwards=1 + self.rounds * self.tries, max_backwards=0)

    def __call__(self, problem: Problem) -> Images:
        best, rows = Lowest(problem.images), torch.arange(len(problem))
        rows = rows.to(problem.images.device)
        best.offer(problem.images, problem.logits(problem.images), problem.goal, rows)
        for number in range(self.rounds * self.tries):
            part = problem[rows]
            if number % self.tries == 0:
                now = best.images.clone()
            tries = self._rearranged(part, now[rows], number)
            met = best.offer(tries, part.logits(tries), part.goal, rows)
            rows = rows[~met & ~part.refused]
            if not len(rows):
                break
        return torch.where(best.met.view(-1, 1, 1, 1), best.images, problem.images)

    def _rearranged(self, problem: Problem, now: Images, step: int) -> Images:
        """``now`` with the pixels of a rectangle of the clean image copied to other places."""
        source, inside = self._rectangle(problem, step)
        clean, planes = problem.images.flatten(2), now.flatten(2)
        place = self._places(problem, planes, source, step)
        turn = torch.arange(source.shape[1], device=source.device).expand_as(source)
        turn = torch.where(inside & (place >= 0), turn, -1)
        last = torch.full_like(planes[:, 0], -1, dtype=torch.long)  # of the pixels that go there
        last.scatter_reduce_(1, place.clamp_min(0), turn, "amax")
        copied = take(clean, source.gather(1, last.clamp_min(0)))
        moved = torch.where((last >= 0).unsqueeze(1), copied, planes).view_as(now)
        return keep_allowed(moved, problem.images, problem.allowed)

    def _rectangle(self, problem: Problem, step: int) -> tuple[Tensor, Tensor]:
        """The pixels of a random rectangle, (batch, most_side^2), and which lie inside it."""
        rng, (height, width) = problem.rng, problem.images.shape[2:]
        number, sides = self.most_side, self.most_side - self.least_side + 1
        side = self.least_side + rng.integers(sides, 2, step=step, use="pixle, sides")
        top = rng.integers(height, step=step, use="pixle, top").view(-1, 1, 1)
        left = rng.integers(width, step=step, use="pixle, left").view(-1, 1, 1)
        along = torch.arange(number, device=side.device)
        y, x = top + along.view(1, -1, 1), left + along
        inside = (along.view(1, -1, 1) < side[:, :1, None]) & (along < side[:, 1:, None])
        inside = inside & (y < height) & (x < width)
        pixel = y.clamp_max(height - 1) * width + x.clamp_max(width - 1)
        return pixel.flatten(1), inside.flatten(1)

    def _places(self, problem: Problem, planes: Tensor, source: Tensor, step: int) -> Tensor:
        """Where each pixel goes; -1 for nowhere."""
        pixels = planes.shape[2]
        allowed = torch.ones_like(planes[:, 0], dtype=torch.bool)
        if problem.allowed is not None:
            allowed = problem.allowed.any(dim=1).flatten(1)
        if self.mapping == "random":
            count = allowed.sum(dim=1, keepdim=True)
            order, _ = find_largest(allowed.byte(), count.squeeze(1), pixels)
            draw = problem.rng.uniform(source.shape[1], step=step, use="pixle, places")
            place = order.gather(1, (draw * count).long())
            return torch.where(count > 0, place, -1)
        colours = take(problem.images.flatten(2), source)
        far = torch.zeros((*source.shape, pixels), dtype=planes.dtype, device=planes.device)
        for own, other in zip(colours.unbind(dim=1), planes.unbind(dim=1), strict=True):
            far += (own.unsqueeze(2) - other.unsqueeze(1)).abs()
        same = source.unsqueeze(2) == torch.arange(pixels, device=source.device)
        barred = same | ~allowed.unsqueeze(1)
        if self.mapping == "similarity":
            near, place = far.masked_fill(barred | (far == 0), torch.inf).min(dim=2)
            return torch.where(near < torch.inf, place, -1)
        most, place = far.masked_fill(barred, -1).max(dim=2)
        return torch.where(most > 0, place, -1)
