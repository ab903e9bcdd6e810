"""Sparse-RS: random search over sets of k pixels, each at a random corner of its colours.

Croce, Andriushchenko, Singh, Flammarion, Hein: Sparse-RS: a versatile framework for query-efficient
sparse black-box adversarial attacks. AAAI 2022.

    M_0     = k random pixels, each channel 0 or 1 at random
    M_{i+1} = M_i with m of its pixels put back and m others taken in, at random corners,
              if that lowers the loss; otherwise M_i

``m = max(1, floor(a_i * k))``, where ``a_i`` falls from ``alpha`` to ``alpha / 20`` as the queries
are spent. A pixel that comes in alone (m = 1) gets a colour other than its own. The loss is the
margin where a label is to be left and the cross-entropy where a target is to be reached. One
forward pass a query, scores alone. An image leaves the batch as soon as it fools.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from pinprick.attacks.card import Attack, Card
from pinprick.attacks.sparse_rs.swaps import Swaps
from pinprick.errors import BadInput
from pinprick.parts.by_goal import by_goal
from pinprick.parts.choice import check_choice
from pinprick.parts.score_loss import ScoreLoss, score_loss
from pinprick.parts.smallest_k import K, check_k, run_at_k
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Counts, Images, Mask, PerImage

_QUERIES = {"label": 10_000, "target": 100_000}  # the paper's, by the goal
_ALPHA = {"label": 0.3, "target": 0.1}
_DIVISORS = (  # from this many ten-thousandths of the queries on, alpha is divided by so much
    (8001, 20),
    (6001, 15),
    (4001, 12),
    (2001, 10),
    (1001, 8),
    (501, 6),
    (201, 5),
    (51, 4),
    (1, 2),
    (0, 1),
)


@dataclass(frozen=True, kw_only=True)
class SparseRS(Attack):
    """Random swaps in a set of k pixels at corners of their colours, kept where they help.

    Attributes:
        k: How many pixels may change, or "smallest" to seek the fewest for each image.
        queries: Most queries per image, for each k that is tried; None for the paper's, 10,000
            where a label is to be left and 100,000 where a target is to be reached.
        alpha: Share of the k pixels that is swapped at first; None for the paper's, 0.3 where a
            label is to be left and 0.1 where a target is to be reached.
        schedule: "falling", as in the paper, or "constant" for half of ``alpha`` throughout.
        loss: "margin" or "cross_entropy"; None for the paper's, the first where a label is to be
            left and the second where a target is to be reached.
        unit: Whether k counts "pixels" or "elements", which the authors call features.
        rounds: How many k are tried for an image at most, where the smallest is sought.
    """

    card: ClassVar[Card] = Card(
        name="sparse_rs",
        title="Sparse-RS",
        norm="l0",
        unit="pixels",
        kind="budget",
        access="scores",
        targeted=True,
        masked=True,
        starts=True,
        random=True,
        paper="arXiv:2006.12834",
        revision=2,
        differences=(
            "An image that never fools keeps its try of the lowest loss; the authors' code "
            "gives the clean one back.",
            "Each image draws which pixels are swapped; in the authors' code the places in the "
            "set are the same for all images of a batch.",
            "The prediction alone decides what fools; in the authors' code a margin of zero does.",
            "Where fewer than m pixels are left to come in, so many are swapped; where the set "
            "holds all that may change, m of them get new colours.",
            "Towards targets `k` stays at 50 unless given; the paper has 150.",
            'Masks and `k="smallest"` are ours; there a search begins at pixels of the sparsest '
            "image found so far.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"queries": 1000},
        "targeted": {"k": 150, "queries": 100_000, "alpha": 0.1},
    }

    k: K = 50
    queries: int | None = None
    alpha: float | None = None
    schedule: Literal["falling", "constant"] = "falling"
    loss: ScoreLoss | None = None
    unit: Literal["elements", "pixels"] = "pixels"
    rounds: int = 10

    def __post_init__(self) -> None:
        check_k("sparse_rs", self.k, self.rounds)
        check_choice("sparse_rs", "schedule", self.schedule, ("falling", "constant"))
        check_choice("sparse_rs", "unit", self.unit, ("elements", "pixels"))
        if self.loss is not None:
            check_choice("sparse_rs", "loss", self.loss, ("margin", "cross_entropy"))
        if self.queries is not None and self.queries < 1:
            raise BadInput(f"sparse_rs needs queries >= 1, got {self.queries}")
        if self.alpha is not None and not 0 < self.alpha <= 1:
            raise BadInput(f"sparse_rs needs alpha above 0 and at most 1, got {self.alpha:g}")

    def facts(self) -> Card:
        most = max(_QUERIES.values()) if self.queries is None else self.queries
        return self.card.at_k(self.k, self.rounds, forwards=most, unit=self.unit)

    def __call__(self, problem: Problem) -> Images:
        return run_at_k(problem, self.search, Units(self.unit), self.k, self.rounds)

    def search(self, problem: Problem, k: Counts, near: Images, trial: int) -> tuple[Images, Mask]:
        """The best try at one k for each image, and where it fooled."""
        queries = by_goal(self.queries, problem.goal, **_QUERIES)
        alpha = by_goal(self.alpha, problem.goal, **_ALPHA)
        images, met = problem.images.clone(), torch.zeros_like(k, dtype=torch.bool)
        rows = torch.arange(len(problem), device=k.device)  # images not fooled yet
        swaps, part = Swaps(problem, Units(self.unit), k, trial), problem
        state = swaps.begin(near)
        loss: PerImage = torch.full_like(k, torch.inf, dtype=torch.float32)
        new = state
        for query in range(queries):
            logits = part.logits(new.as_images(part.images))
            refused, done = part.refused, part.goal.met(logits)
            lower = score_loss(part.goal, logits, self.loss)
            take = ((lower < loss) | done) & ~refused
            state, loss = new.where(take, state), lower.where(take, loss)
            gone = done | refused
            if query + 1 < queries:  # the next try, before a device is waited for
                new = swaps.propose(state, self._share(query + 1, queries, alpha), query + 1)
            if gone.any():
                judged = (loss < torch.inf) | done  # not where every loss was no number
                images[rows[gone & judged]] = state.as_images(part.images)[gone & judged]
                met[rows[done]] = True
                stay = (~gone).nonzero().squeeze(1)
                rows, swaps, state, new = rows[stay], swaps[stay], state[stay], new[stay]
                part, loss = swaps.problem, loss[stay]
            if not len(rows):
                return images, met
        judged = loss < torch.inf
        images[rows[judged]] = state.as_images(part.images)[judged]
        return images, met

    def _share(self, query: int, queries: int, alpha: float) -> float:
        """Which share of the set is swapped, a_i."""
        if self.schedule == "constant":
            return alpha / 2
        spent = int(query / queries * 10_000)
        return alpha / next(divisor for start, divisor in _DIVISORS if spent >= start)
