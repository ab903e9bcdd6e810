"""BruSLeAttack: which k pixels to copy from one random image, learnt from the swaps that failed.

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
forward pass a query, scores alone. An image leaves the batch as soon as it fools.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from pinprick.attacks.brusle.masks import PIXELS, Masks, share
from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
from pinprick.parts.by_goal import by_goal
from pinprick.parts.choice import check_choice
from pinprick.parts.score_loss import ScoreLoss, score_loss
from pinprick.parts.smallest_k import K, check_k, run_at_k
from pinprick.problem import Problem
from pinprick.types import Counts, Images, Mask

_QUERIES = {"label": 5000, "target": 10_000}  # the paper's, by the goal


@dataclass(frozen=True, kw_only=True)
class BruSLe(Attack):
    """A search for the k pixels to take from a random image of pure colours.

    Attributes:
        k: How many pixels change, or "smallest" to seek the fewest for each image.
        queries: Most queries per image, for each k that is tried; None for the paper's, 5000 where
            a label is to be left and 10,000 where a target is to be reached.
        starts: How many of them are random masks.
        swap: The share of the pixels that is swapped at first, lambda_0 in the paper; None for the
            paper's, 0.3 where a label is to be left and 0.05 where a target is to be reached.
        loss: "margin" or "cross_entropy"; None for the paper's, the first where a label is to be
            left and the second where a target is to be reached.
        rounds: How many k are tried for an image at most, where the smallest is sought.
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
            "An image that never fools keeps its best mask; the authors' code gives back the "
            "last one tried.",
            "The random masks may fool, too, and lie where `s` differs from `x`, so that no "
            "pixel is wasted.",
            "No query is made beyond the limit.",
            "The margin is that of the logits, with the best of the other classes: that of "
            "probabilities is 1 for all masks where the model is sure.",
            "Any number of channels and any height and width will do.",
            'The mask of allowed places and `k="smallest"` are ours; there `s` stays, and the '
            "random masks are parts of the sparsest found so far.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"queries": 1000},
        "targeted": {"queries": 10_000, "swap": 0.05},
    }

    k: K = 50
    queries: int | None = None
    starts: int = 10
    swap: float | None = None
    loss: ScoreLoss | None = None
    rounds: int = 10

    def __post_init__(self) -> None:
        check_k("brusle", self.k, self.rounds)
        if self.loss is not None:
            check_choice("brusle", "loss", self.loss, ("margin", "cross_entropy"))
        for setting in ("queries", "starts"):
            value = getattr(self, setting)
            if value is not None and value < 1:
                raise BadInput(f"brusle needs {setting} >= 1, got {value}")
        if self.swap is not None and not 0 < self.swap <= 1:
            raise BadInput(f"brusle needs swap above 0 and at most 1, got {self.swap:g}")

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
            fooled, refused = part.goal.met(logits), part.refused
            loss = score_loss(part.goal, logits, self.loss).masked_fill(fooled, -torch.inf)
            masks.learn(tried, loss.masked_fill(refused, torch.inf), swapped=query >= self.starts)
            done = fooled | refused | masks.alone
            if query + 1 < queries:  # the next try, before a device is waited for
                tried = self._propose(part, masks, most, query + 1, trial * queries)
            if done.any():
                gone, stay = done.nonzero().squeeze(1), (~done).nonzero().squeeze(1)
                found[rows[gone]] = masks[gone].made_best(part.images[gone])
                met[rows[gone]] = fooled[gone]
                rows, part, masks, tried = rows[stay], part[stay], masks[stay], tried[stay]
        found[rows] = masks.made_best(part.images)
        return found, met

    def _propose(
        self, problem: Problem, masks: Masks, most: int, query: int, before: int
    ) -> Tensor:
        """The masks that a query is about, of which there were so many ``before`` at other k."""
        if query < self.starts:
            return masks.start(problem, most, before + query, first=query == 0)
        swap = by_goal(self.swap, problem.goal, label=0.3, target=0.05)
        return masks.swap(problem, most, before + query, share(query, swap))
