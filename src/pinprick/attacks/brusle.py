"""BruSLeAttack: which k pixels to copy from one random image, learnt from failed swaps.

Vo, Abbasnejad, Ranasinghe: BruSLeAttack: a query-efficient score-based black-box sparse adversarial
attack. ICLR 2024.

Every channel of every pixel of a synthetic image ``s`` is 0 or 1, drawn once. A mask ``u`` of k
pixels makes the image ``u * s + (1 - u) * x``. After ``starts`` random masks the best is changed:

    theta = (fails + 0.01) / (visits + 0.01)                for each pixel
    m     = max(1, floor(k * lam(q)))                       after q queries
    u'    = k - m pixels of u by theta, and m others by theta * mean |s - x|
    lam(q) = swap * ((q + 1)^-0.24 + 0.997^(q + 1)) / 2

drawn without replacement, exactly. If ``u'`` has the lower loss, it is the new ``u``; if not, the
pixels that it left out have failed. These and the pixels of ``u'`` are visited. The loss is the
margin where a label is to be left and the cross-entropy where a target is to be reached. One
forward pass per query, scores alone. An image leaves the batch as soon as it fools.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.batch_rows import BatchRows
from pinprick.parts.box import keep_allowed
from pinprick.parts.largest import mask_largest
from pinprick.parts.score_loss import ScoreLoss, by_goal, score_loss
from pinprick.parts.smallest_k import K, run_at_k
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.random import Streams
from pinprick.settings import setting
from pinprick.types import Counts, Images, Mask, PerImage

PIXELS = Units("pixels")
_POWER, _BASE = 0.24, 0.997  # m1 and m2 of the paper, how the swaps shrink
_PRIOR = 0.01  # of fails and visits
_FIRST = 1e9  # the weight of pixels that come before all others
_QUERIES = {"label": 5000, "target": 10_000}  # the paper's, by the goal


@dataclass(frozen=True, kw_only=True)
class BruSLe(Attack):
    """A search for the k pixels to take from a random image of pure colours.

    Attributes:
        k: Number of pixels that change, or "smallest" to seek the fewest for each image.
        queries: Most queries per image, for each k that is tried. None for the paper's: 5000
            untargeted, 10,000 targeted.
        starts: Queries, of all, that try random masks.
        swap: Share of the pixels that is swapped at first, lambda_0 in the paper. None for the
            paper's: 0.3 untargeted, 0.05 targeted.
        loss: What falls during the search. None for the paper's: "margin" untargeted,
            "cross_entropy" targeted.
        rounds: Values of k that are tried per image at most, if k is "smallest".
    """

    card: ClassVar[Card] = Card(
        name="brusle",
        title="BruSLeAttack",
        norm="l0",
        unit="pixels",
        kind="budget",
        access="scores",
        targeted=True,
        masked=True,
        starts=True,
        random=True,
        paper="arXiv:2404.05311",
        revision=2,
        differences=(
            "If no mask fools, the best mask is returned. The authors' code returns the last one.",
            "The random masks at the start may fool too. They only use pixels where `s` "
            "differs from `x`.",
            "The limit of queries is strict.",
            "The margin is that of the logits. The margin of probabilities is 1 for all masks "
            "if the model is confident.",
            "Images may have any number of channels and any size.",
            "The mask of allowed pixels is ours.",
            '`k="smallest"` is ours. It uses one `s` for all `k` and draws random masks from '
            "the sparsest mask found so far.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"queries": 1000},
        "targeted": {"queries": 10_000, "swap": 0.05},
    }

    k: K = setting(50, least=1)
    queries: int | None = setting(None, least=1)
    starts: int = setting(10, least=1)
    swap: float | None = setting(None, above=0, most=1)
    loss: ScoreLoss | None = None
    rounds: int = setting(10, least=1)

    def facts(self) -> Card:
        most = max(_QUERIES.values()) if self.queries is None else self.queries
        return self.card.at_k(self.k, self.rounds, forwards=most)

    def __call__(self, problem: Problem) -> Images:
        return run_at_k(problem, self._search, PIXELS, self.k, self.rounds)

    def _search(self, problem: Problem, k: Counts, near: Images, trial: int) -> tuple[Images, Mask]:
        """The best try at one k for each image, and where it fooled."""
        queries = by_goal(self.queries, problem.goal, **_QUERIES)
        found, met = problem.images.clone(), torch.zeros_like(k, dtype=torch.bool)
        masks, most = Masks(problem, k, near), int(k.max())
        rows = masks.count.nonzero().flatten()  # images still searched, if they have a pixel
        part, masks = problem[rows], masks[rows]
        tried = self._propose(part, masks, most, 0, trial * queries)
        for query in range(queries):
            if not len(rows):
                return found, met
            logits = part.logits(masks.made(tried, part.images))
            fooled = part.goal.met(logits)
            loss = score_loss(part.goal, logits, self.loss).masked_fill(fooled, -torch.inf)
            masks.learn(tried, loss, swapped=query >= self.starts)
            done = fooled | part.refused | masks.alone
            if query + 1 < queries:  # before waiting for the device
                tried = self._propose(part, masks, most, query + 1, trial * queries)
            if done.any():
                gone, stay = done.nonzero().squeeze(1), (~done).nonzero().squeeze(1)
                found[rows[gone]] = masks[gone].made_best(part.images[gone])
                met[rows[gone]] = fooled[gone]
                rows, part, masks, tried = rows[stay], part[stay], masks[stay], tried[stay]
        found[rows] = masks.made_best(part.images)
        return found, met

    def _propose(
        self, problem: Problem, masks: "Masks", most: int, query: int, before: int
    ) -> Tensor:
        """The masks of the next query; ``before`` queries were made at other k."""
        if query < self.starts:
            return masks.start(problem, most, before + query, first=query == 0)
        swap = by_goal(self.swap, problem.goal, label=0.3, target=0.05)
        return masks.swap(problem, most, before + query, share(query, swap))


def share(query: int, swap: float) -> float:
    """The share of the pixels to swap after ``query`` queries, lambda in the paper."""
    return swap * (math.pow(query + 1, -_POWER) + math.pow(_BASE, query + 1)) / 2


def synthetic(problem: Problem) -> Images:
    """Pure colours, 0 or 1 in every channel; the clean values where nothing may change.

    Pixels that a start changed have the colours they have there.
    """
    images = problem.images
    colours = problem.rng.integers(2, *images.shape[1:], step=0, use="brusle colours")
    pure = keep_allowed(colours.to(images.dtype), images, problem.allowed)
    begun = PIXELS.spread(PIXELS.changed(problem.begin, images), images)
    return torch.where(begun, problem.begin, pure)


class Masks(BatchRows):
    """The best mask of pixels so far for each image, and proposals to improve on it.

    What belongs to pixels has the shape (batch, pixel).

    Attributes:
        count: Number of pixels copied: k, or as many as differ if those are fewer.
        alone: Where only one mask exists.
        best: The best masks so far; ``loss`` is theirs.
        fails, visits: How often leaving out a pixel did not help, and how often it was tried.

    Args:
        problem: The images.
        k: How many pixels may be copied.
        near: The random masks are parts of where this differs from the clean image. If it differs
            in fewer than k pixels, the first mask is all of these, and the others add more.
    """

    def __init__(self, problem: Problem, k: Counts, near: Images) -> None:
        images = problem.images
        precise = torch.promote_types(images.dtype, torch.float32)
        self._colours = synthetic(problem)
        difference = (self._colours.to(precise) - images.to(precise)).abs()
        self._apart = (PIXELS.total(difference) / images.shape[1]).float()
        useful, known = self._apart > 0, PIXELS.changed(near, images)
        self._known = (known & useful).float()
        few = known.sum(dim=1, keepdim=True) < k.unsqueeze(1)
        self._origin = torch.where(few, _FIRST * self._known + useful, self._known)
        self._spare = (useful.sum(dim=1) - k).clamp_min(0)
        self.count: Counts = torch.minimum(k, useful.sum(dim=1))
        self.alone: Mask = self._spare == 0
        self.best = torch.zeros_like(useful)
        self.loss: PerImage = torch.full_like(k, torch.inf, dtype=precise)
        self.fails, self.visits = torch.zeros_like(self._apart), torch.zeros_like(self._apart)

    def start(self, problem: Problem, most: int, step: int, *, first: bool = False) -> Tensor:
        """Random masks; ``most`` bounds the counts."""
        times = self._times(problem, step)
        origin = self._origin
        if first:
            origin = torch.where(self._known.any(dim=1, keepdim=True), self._known, origin)
        return draw_subset(origin, times, self.count, most)

    def swap(self, problem: Problem, most: int, step: int, part: float) -> Tensor:
        """The best masks with a part of their pixels left out and as many others taken in."""
        theta = (self.fails + _PRIOR) / (self.visits + _PRIOR)
        swapped = torch.minimum((self.count * part).long().clamp_min(1), self._spare)
        times = self._times(problem, step)  # one for both draws, which share no pixel
        weights = torch.stack((theta * self.best, theta * self._apart * ~self.best), dim=1)
        count = torch.stack((self.count - swapped, swapped), dim=1)
        return draw_subset(weights, times.unsqueeze(1), count, most).any(dim=1)

    def learn(self, tried: Tensor, loss: PerImage, *, swapped: bool) -> None:
        """Accept the masks of lower loss; elsewhere the pixels they left out have failed."""
        better = take = loss < self.loss
        if swapped:
            left_out = self.best & ~tried
            self.fails = self.fails + (left_out & ~better.unsqueeze(1))
            self.visits = self.visits + left_out
        else:
            take = better | ~self.best.any(dim=1)  # the first, whatever it is worth
        self.visits = self.visits + tried
        self.best = torch.where(take.unsqueeze(1), tried, self.best)
        self.loss = torch.where(better, loss.to(self.loss.dtype), self.loss)

    def made(self, pixels: Tensor, images: Images) -> Images:
        """The clean images with some pixels copied."""
        return torch.where(PIXELS.spread(pixels, images), self._colours, images)

    def made_best(self, images: Images) -> Images:
        """The images of the best masks; the clean ones where no mask has a loss."""
        judged = (self.loss < torch.inf).unsqueeze(1)
        return self.made(self.best & judged, images)

    def _times(self, problem: Problem, step: int) -> Tensor:
        return draw_times(problem.rng, self._apart.shape[1], step=step, use="brusle masks")


def draw_times(rng: Streams, pixels: int, *, step: int, use: str) -> Tensor:
    """An arrival time at rate one for each pixel, of shape (batch, pixels); never 0.

    With weights it is an exponential time of rate ``weight_p``. The k pixels that come first are a
    draw of k without replacement, each in proportion to its weight among those left. This is the
    Gumbel top-k trick (Kool, van Hoof, Welling, ICML 2019), and it is exact. Draws from disjoint
    sets of pixels can use the same times.
    """
    draw = rng.uniform(pixels, step=step, use=use)
    return (-(-draw).log1p()).clamp_min(2**-25)


def draw_subset(weights: Tensor, times: Tensor, count: Tensor, most: int) -> Tensor:
    """A mask of ``count`` pixels drawn by ``weights``, fewer where fewer have a weight above 0.

    Args:
        weights: How likely each pixel is, (batch, pixels), none below 0; or several draws per
            image, (batch, draw, pixels).
        times: From ``draw_times``.
        count: How many to draw per image, or per draw.
        most: A bound on the counts, which avoids waiting for the device.
    """
    return mask_largest(weights / times, count, most)
