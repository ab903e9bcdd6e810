"""CornerSearch: try every jump of a single pixel, then random sets of the best of them.

Croce, Hein: Sparse and imperceivable adversarial attacks. ICCV 2019.

1. Query every image in which one pixel jumps to one of the 2^C corners of its colours. Rank the
   jumps by what is left of the margin over each rival class, and of the margin itself.
2. For k = 2, 3, ... pixels and each of these rankings, query ``tries`` sets of k jumps, drawn from
   the ``best`` N of the ranking: the i-th best with probability (2 (N - i) + 1) / N^2. Stop at the
   first k that fools.

It needs scores alone. The first part costs at most ``singles`` forward passes, the second
``tries`` for each k and ranking.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
from pinprick.goal import Goal
from pinprick.parts.best import Best
from pinprick.parts.box import keep_allowed
from pinprick.parts.rivals import rivals_of
from pinprick.parts.sigma_map import sigma_lines
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Counts, Images, Labels, Logits

_MOST_CHANNELS = 4
_BLOCK = 64  # queries per image before it may leave
_ELEMENTS = 2**21  # of the images in one pass, or as many images as there are in the problem


@dataclass(frozen=True, kw_only=True)
class CornerSearch(Attack):
    """Random sets of the best single jumps, of more and more pixels.

    Attributes:
        max_pixels: Give up on an image after this many pixels.
        pixel_step: Number of pixels to add after a failure.
        best: Number of jumps of a ranking that sets are drawn from, N.
        tries: Sets per number of pixels and ranking.
        rivals: Number of other classes with a ranking, besides that by the margin.
        singles: Single jumps that are tried at most; drawn at random if there are more.
        kappa: Multiple of the σ-map to jump to; None for the corners.
    """

    card: ClassVar[Card] = Card(
        name="corner_search",
        title="CornerSearch",
        norm="l0",
        unit="pixels",
        kind="minimal",
        access="scores",
        targeted=True,
        masked=True,
        random=True,
        paper="arXiv:1909.05040",
        differences=(
            "Of each block of 64 sets, the sparsest that fools is returned. The authors' code "
            "returns the first.",
            "If there are more than `singles` jumps, a random choice of them is tried.",
            "Of two jumps at one pixel, the first counts. Jumps that change nothing are not "
            "queried.",
            "Each of the `rivals` most likely classes has a ranking, for any number of "
            "classes. The authors' code is for ten classes.",
            "The targeted form is ours. It ranks by the margin of each rival over the target.",
            "Both ends of the σ-map start from the clean pixel. In the authors' code the "
            "second jump starts where the first ended.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"singles": 512, "rivals": 0, "tries": 10},
        "sigma": {"kappa": 0.8, "best": 150, "max_pixels": 100, "pixel_step": 5},
    }

    max_pixels: int = setting(50, least=1)
    pixel_step: int = setting(1, least=1)
    best: int = setting(100, least=1)
    tries: int = setting(1000, least=1)
    rivals: int = setting(9, least=0)
    singles: int = setting(8192, least=1)
    kappa: float | None = setting(None, above=0)

    def facts(self) -> Card:
        sets = len(self._counts()) * (self.rivals + 1) * self.tries
        return replace(self.card, max_forwards=1 + self.singles + sets, max_backwards=0)

    def __call__(self, problem: Problem) -> Images:
        found = Best(problem.images)
        kappa = self.kappa
        changes = corner_changes(problem) if kappa is None else sigma_changes(problem, kappa)
        jumps, number = self._singles(problem, changes)
        margins = self._try_singles(problem, changes, jumps, number, found)
        number = number.clamp(max=self.best)
        order = margins.sort(dim=1, stable=True).indices[:, : self.best]
        rows = (found.cost.isinf() & (number > 0)).nonzero().flatten()
        for step, pixels, ranking, sets in self._draws(margins.shape[2]):
            if not len(rows):
                break
            part, most = problem[rows], number[rows].view(-1, 1, 1)
            draw = part.rng.uniform(sets, pixels, step=step, use="corner_search sets")
            place = (most - 1 - (most * draw.sqrt()).long()).clamp_min(0).flatten(1)
            drawn = jumps[rows].gather(1, order[rows, :, ranking].gather(1, place))
            self._judge(part, changes, drawn.unflatten(1, (sets, pixels)), found, rows)
            rows = rows[found.cost[rows].isinf() & ~problem.refused[rows]]
        return found.images

    def _counts(self) -> range:
        return range(1 + self.pixel_step, self.max_pixels + 1, self.pixel_step)

    def _draws(self, rankings: int) -> Iterator[tuple[int, int, int, int]]:
        """For each block of sets its number, its pixels, its ranking and how many sets it has."""
        step = 0
        for pixels in self._counts():
            for ranking in range(rankings):
                for start in range(0, self.tries, _BLOCK):
                    yield step, pixels, ranking, min(_BLOCK, self.tries - start)
                    step += 1

    def _singles(self, problem: Problem, changes: "Changes") -> tuple[Tensor, Counts]:
        """The single jumps to try, useful ones first, and the number of useful ones."""
        every = changes.useful.shape[1]
        draw = torch.zeros_like(changes.useful, dtype=torch.float32)
        if every > self.singles:
            draw = problem.rng.uniform(every, step=0, use="corner_search singles")
        draw = draw.masked_fill(~changes.useful, -1)
        jumps = draw.argsort(dim=1, descending=True, stable=True)[:, : self.singles]
        return jumps, changes.useful.sum(dim=1).clamp(max=self.singles)

    def _try_singles(
        self, problem: Problem, changes: "Changes", jumps: Tensor, number: Counts, found: Best
    ) -> Tensor:
        """The margins after each jump, (batch, jump, ranking)."""
        clean = problem.logits(problem.images)
        others = rivals_of(clean, _anchor(problem.goal), self.rivals)
        left = torch.full((*jumps.shape, others.shape[1] + 1), torch.inf, device=jumps.device)
        rows = torch.arange(len(problem), device=jumps.device)
        for start in range(0, jumps.shape[1], _BLOCK):
            going = found.cost.isinf() & (number > start) & ~problem.refused
            rows = rows[going[rows]]
            if not len(rows):
                break
            block = jumps[rows, start : start + _BLOCK].unsqueeze(2)
            place = start + torch.arange(block.shape[1], device=jumps.device)
            left[rows, start : start + _BLOCK] = self._judge(
                problem[rows],
                changes,
                block,
                found,
                rows,
                useful=place < number[rows].unsqueeze(1),
                others=others[rows],
            )
        return left

    def _judge(
        self,
        problem: Problem,
        changes: "Changes",
        sets: Tensor,
        found: Best,
        rows: Labels,
        *,
        useful: Tensor | None = None,
        others: Tensor | None = None,
    ) -> Tensor:
        """Query one block, (batch, set, jump); save the sparsest that fools; return the margins."""
        if useful is None:
            useful = torch.ones_like(sets[:, :, 0], dtype=torch.bool)
        rankings = 0 if others is None else others.shape[1] + 1
        cost = torch.full(sets.shape[:2], torch.inf, device=sets.device)
        left = torch.full((*sets.shape[:2], rankings), torch.inf, device=sets.device)
        size = max(len(problem), _ELEMENTS // problem.images[0].numel())
        for pairs in useful.nonzero().split(size):
            row, place = pairs.unbind(dim=1)
            part = problem[row]
            adv = changes.made(part.images, sets[row, place], rows[row])
            logits = part.logits(adv)
            count = Units("pixels").count(adv, part.images)
            cost[row, place] = count.masked_fill(~part.goal.met(logits), torch.inf)
            if others is not None:
                left[row, place] = _margins(part.goal, logits.float(), others[row])
        least, place = cost.min(dim=1)
        chosen = sets[torch.arange(len(sets), device=sets.device), place]
        adv = changes.made(problem.images, chosen, rows)
        found.offer(adv, least, least.isfinite(), rows)
        return left


@dataclass(frozen=True)
class Changes:
    """The colours that each pixel may jump to.

    A jump is a number: ``option * pixels + pixel``. So choices of many jumps for many images are
    one tensor of whole numbers, and only the images of the next query are made.

    Attributes:
        colours: Their values, (batch, option, channel, pixel).
        useful: Jumps that change something, and not the same as another, (batch, option * pixel).
    """

    colours: Tensor
    useful: Tensor

    def made(self, images: Images, jumps: Tensor, rows: Labels) -> Images:
        """``images`` with some jumps each; of several at one pixel, the first counts.

        Args:
            images: The clean images, one for each choice of jumps.
            jumps: Some for each, (candidate, jump).
            rows: Which image of the batch each is.
        """
        channels, pixels = self.colours.shape[2:]
        option, pixel = jumps // pixels, jumps % pixels
        first = (pixel.unsqueeze(2) == pixel.unsqueeze(1)).int().argmax(dim=2)
        option = option.gather(1, first)
        values = self.colours[rows.unsqueeze(1), option, :, pixel].transpose(1, 2)
        places = pixel.unsqueeze(1).expand(-1, channels, -1)
        return images.flatten(2).scatter(2, places, values).view_as(images)


def corner_changes(problem: Problem) -> Changes:
    """Every corner of the colours: all channels at 0 or 1."""
    images, allowed = problem.images, problem.allowed
    channels = images.shape[1]
    if channels > _MOST_CHANNELS:
        raise BadInput(
            f"corner_search tries all 2^C corners of a pixel's C channels, at most "
            f"{_MOST_CHANNELS}; these images have {channels}"
        )
    colours, useful = [], []
    for option in range(2**channels):
        corner = torch.tensor([option >> channel & 1 for channel in range(channels)])
        corner = corner.to(images).view(1, -1, 1, 1).expand_as(images)
        jumped = keep_allowed(corner, images, allowed)
        changes = (jumped != images).any(dim=1)
        if allowed is not None:  # channels that may not change would repeat a jump
            changes &= ~((corner > 0) & ~allowed).any(dim=1)
        colours.append(jumped.flatten(2))
        useful.append(changes.flatten(1))
    return Changes(torch.stack(colours, dim=1), torch.cat(useful, dim=1))


def sigma_changes(problem: Problem, kappa: float) -> Changes:
    """The two ends of the line of the σ-map."""
    ends = sigma_lines(problem, kappa).ends()
    useful = [(end != problem.images).any(dim=1).flatten(1) for end in ends]
    return Changes(torch.stack([end.flatten(2) for end in ends], dim=1), torch.cat(useful, dim=1))


def _anchor(goal: Goal) -> Labels:
    """The class that others are rivals of: the target, or else the label."""
    return goal.labels if goal.targets is None else goal.targets


def _margins(goal: Goal, logits: Logits, others: Tensor) -> Tensor:
    """The margin over each rival, and the goal's own last; NaN counts as infinite."""
    over = logits.gather(1, _anchor(goal).unsqueeze(1)) - logits.gather(1, others)
    over = over if goal.targets is None else -over
    return torch.cat((over, goal.margin(logits).unsqueeze(1)), dim=1).nan_to_num(torch.inf)
