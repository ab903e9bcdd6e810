"""Sparse-RS: random search over sets of k pixels, each at a random corner of its colours.

Croce, Andriushchenko, Singh, Flammarion, Hein: Sparse-RS: a versatile framework for query-efficient
sparse black-box adversarial attacks. AAAI 2022.

    M_0     = k random pixels, each channel 0 or 1 at random
    M_{i+1} = M_i with m of its pixels restored and m others added, at random corners,
              if that lowers the loss; otherwise M_i

``m = max(1, floor(a_i * k))``, where ``a_i`` falls from ``alpha`` to ``alpha / 20`` as the queries
are spent. A pixel that comes in alone (m = 1) gets a colour other than its own. The loss is the
margin where a label is to be left and the cross-entropy where a target is to be reached. One
forward pass per query, scores alone. An image leaves the batch as soon as it fools.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.batch_rows import BatchRows
from pinprick.parts.largest import find_largest
from pinprick.parts.score_loss import ScoreLoss, by_goal, score_loss
from pinprick.parts.smallest_k import K, run_at_k
from pinprick.parts.units import Units, take
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Counts, Images, Mask, PerImage

_QUERIES = {"label": 10_000, "target": 100_000}  # the paper's, by the goal
_ALPHA = {"label": 0.3, "target": 0.1}
_DIVISORS = (  # from this many ten-thousandths of the queries on, alpha is divided by the second
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
_PATTERNS = 16  # channels of a pixel among which at least one is flipped
_ABOVE_ZERO = 2**-25  # half a step of the random numbers, so that no key is zero


@dataclass(frozen=True, kw_only=True)
class SparseRS(Attack):
    """Random swaps in a set of k pixels at corners of their colours, kept where they help.

    Attributes:
        k: Number of pixels that may change, or "smallest" to seek the fewest for each image.
        queries: Most queries per image, for each k that is tried. None for the paper's: 10,000
            untargeted, 100,000 targeted.
        alpha: Share of the k pixels that is swapped at first. None for the paper's: 0.3
            untargeted, 0.1 targeted.
        schedule: "falling", as in the paper, or "constant" for half of ``alpha`` throughout.
        loss: What falls during the search. None for the paper's: "margin" untargeted,
            "cross_entropy" targeted.
        unit: Whether k counts "pixels" or "elements", which the authors call features.
        rounds: Values of k that are tried per image at most, if k is "smallest".
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
            "If no try fools, the one with the lowest loss is returned. The authors' code returns "
            "the clean image.",
            "Each image draws its own swaps. In the authors' code the swapped indices in the set "
            "are the same for all images of a batch.",
            "Only the prediction decides what fools. In the authors' code a margin of zero fools.",
            "If fewer than m pixels are left outside the set, only that many are swapped. If none "
            "is left, m pixels get new colours.",
            "With targets `k` stays at 50 unless given. The paper has 150.",
            'Masks and `k="smallest"` are ours.',
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"queries": 1000},
        "targeted": {"k": 150, "queries": 100_000, "alpha": 0.1},
    }

    k: K = setting(50, least=1)
    queries: int | None = setting(None, least=1)
    alpha: float | None = setting(None, above=0, most=1)
    schedule: Literal["falling", "constant"] = "falling"
    loss: ScoreLoss | None = None
    unit: Literal["elements", "pixels"] = "pixels"
    rounds: int = setting(10, least=1)

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
            done = part.goal.met(logits)
            lower = score_loss(part.goal, logits, self.loss)
            take = (lower < loss) | done
            state, loss = new.where(take, state), lower.where(take, loss)
            gone = done | part.refused
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


@dataclass(frozen=True)
class SwapState(BatchRows):
    """Images in the making.

    Attributes:
        adv: The images, (batch, channel, unit).
        members: Which units are in the set, (batch, unit).
    """

    adv: Tensor
    members: Tensor

    def where(self, take: Mask, other: "SwapState") -> "SwapState":
        """This where ``take`` says so, ``other`` elsewhere."""
        return SwapState(
            torch.where(take.view(-1, 1, 1), self.adv, other.adv),
            torch.where(take.view(-1, 1), self.members, other.members),
        )

    def as_images(self, like: Images) -> Images:
        return self.adv.view_as(like)


@dataclass(frozen=True)
class SwapPlan(BatchRows):
    """How many units are swapped at a share of the set.

    Attributes:
        share: The share.
        count: How many of each image.
        most: A bound on the counts.
    """

    share: float
    count: Counts
    most: int


class Swaps(BatchRows):
    """The random operators: the first set, a swap in it, and its colours, for each image.

    Images have the shape (batch, channel, unit); elements have one channel and one unit per value.
    A random key per unit decides: the largest keys inside the set leave and the largest outside
    enter, which draws both without replacement.

    Attributes:
        problem: The images.

    Args:
        problem: The images.
        units: What the set is made of.
        k: Number of units in it; as many as may change if those are fewer.
        trial: Gives each search its own random numbers.
    """

    SHARED = ("_channel",)

    def __init__(self, problem: Problem, units: Units, k: Counts, trial: int) -> None:
        self.problem, self._units, self._use = problem, units, f"sparse_rs, trial {trial}"
        self._clean = units.planes(problem.images)
        allowed = problem.allowed
        self._open = None if allowed is None else units.planes(allowed)
        free = torch.ones_like(self._clean[:, 0], dtype=torch.bool)
        self._free = free if self._open is None else self._open.any(dim=1)
        self._k = torch.minimum(k, self._free.sum(dim=1))
        self._spare = self._free.sum(dim=1) - self._k
        self._most = int(self._k.max()) if len(k) else 0
        self._pool = self._free & (self._spare > 0).unsqueeze(1)
        self._channel = torch.arange(self._clean.shape[1], device=k.device).unsqueeze(1)
        self._plan: SwapPlan | None = None  # of the share that was asked for last

    def begin(self, near: Images) -> SwapState:
        """A set of k units at random corners; those that ``near`` changed come first, as there.

        Where it changed fewer than k, the others stay clean until they are swapped, so that the
        first query is ``near`` itself.
        """
        found = self._units.planes(near)
        changed = (found != self._clean).any(dim=1)
        keys = self._keys(0) + changed  # above one where near changed something
        places, chosen = find_largest(keys * self._free, self._k, self._most)
        adv = self._put(self._clean, places, chosen, self._corners(places, 0))
        members = torch.zeros_like(self._free).scatter(1, places, chosen)
        begun = changed.any(dim=1, keepdim=True) & members  # what was not changed is clean there
        return SwapState(torch.where(begun.unsqueeze(1), found, adv), members)

    def propose(self, state: SwapState, share: float, step: int) -> SwapState:
        """The set with a share of its units restored and as many others added."""
        if self._plan is None or share != self._plan.share:
            self._plan = self._planned(share)
        plan = self._plan
        outside = self._pool ^ state.members  # the members themselves where nothing is left
        keys = self._keys(step).unsqueeze(1) * torch.stack((state.members, outside), dim=1)
        places, chosen = find_largest(keys, plan.count.unsqueeze(1), plan.most)
        (go, come), (goes, comes) = places.unbind(dim=1), chosen.unbind(dim=1)
        colours = self._other_than(take(state.adv, come), come, step, plan.count == 1)
        adv = self._put(state.adv, go, goes, take(self._clean, go))
        members = state.members.scatter(1, go, ~goes & state.members.gather(1, go))
        members = members.scatter(1, come, comes | members.gather(1, come))
        return SwapState(self._put(adv, come, comes, colours), members)

    def _planned(self, share: float) -> SwapPlan:
        room = torch.where(self._spare == 0, self._k, self._spare)
        count = torch.minimum(_swapped(share, self._k), room)
        return SwapPlan(share, count, int(_swapped(share, torch.tensor([self._most]))))

    def _keys(self, step: int) -> Tensor:
        units = self._free.shape[1]
        return self.problem.rng.uniform(units, step=step, use=f"{self._use}, keys") + _ABOVE_ZERO

    def _corners(self, places: Tensor, step: int) -> Tensor:
        """A random corner for each of some places, (batch, channel, place), as whole numbers."""
        shape = places.shape[1], self._clean.shape[1]
        bits = self.problem.rng.integers(2, *shape, step=step, use=f"{self._use}, colours")
        return bits.transpose(1, 2)

    def _other_than(self, current: Tensor, places: Tensor, step: int, single: Mask) -> Tensor:
        """Random corners; where one is single and the current one, drawn among all that are not.

        The colour at hand is a corner there, so some of its free channels are flipped: the set of
        them is one of all but the empty set, each as likely as the others.
        """
        colours, channels = self._corners(places, step), self._clean.shape[1]
        draw = self.problem.rng.uniform(places.shape[1], step=step, use=f"{self._use}, flips")
        same: Tensor = colours == current
        if self._open is None:
            rank, draw = self._channel, draw * (2 ** min(channels, _PATTERNS) - 1)
        else:
            free = take(self._open, places)
            same, rank = same | ~free, free.cumsum(dim=1) - 1
            draw = draw * (2 ** (rank[:, -1] + 1).clamp(max=_PATTERNS) - 1)
        again = same.all(dim=1, keepdim=True) & single.view(-1, 1, 1)
        flips = 1 + draw.long().unsqueeze(1)
        return colours ^ ((flips >> rank.clamp(0, _PATTERNS)) & again)

    def _put(self, adv: Tensor, places: Tensor, chosen: Tensor, colours: Tensor) -> Tensor:
        """``adv`` with new colours at the chosen places, in the channels that may change."""
        current = take(adv, places)
        put = chosen.unsqueeze(1)
        if self._open is not None:
            put = put & take(self._open, places)
        where = places.unsqueeze(1).expand_as(current)
        return adv.scatter(2, where, torch.where(put, colours.to(adv.dtype), current))


def _swapped(share: float, k: Counts) -> Counts:
    """How many of k are swapped, m."""
    return (share * k.float()).long().clamp_min(1)
