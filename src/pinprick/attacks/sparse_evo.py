"""SparseEvo: from a noisy image that fools back to the clean one, pixel by pixel, by classes only.

Vo, Abbasnejad, Ranasinghe: Query efficient decision based sparse attacks against black-box deep
learning models. ICLR 2022.

``s`` is an image that fools. A set ``v`` of pixels makes the image ``v * s + (1 - v) * x``. The
first members of a population are the whole set without a share of random pixels, fewer and fewer
of them until it fools. Then, with a and b two members other than the best,

    child = best and (a or b, pixel for pixel, a with probability crossover)
            less max(1, floor(mutation * |child|)) random pixels

If it fools, it replaces the member farthest from x. One forward pass per child, of which only the
class is used.

``s`` is the problem's start if that fools (for example an image of the target class). Otherwise it
is salt-and-pepper noise on a share of the pixels that grows from try to try.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.batch_rows import BatchRows
from pinprick.goal import Goal
from pinprick.parts.largest import mask_largest
from pinprick.parts.score_loss import by_goal
from pinprick.parts.starts import find_starts, salt_and_pepper
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Counts, Images, Labels, Mask, Rows

_ABOVE_ZERO = 2**-25  # half a step of the random numbers, so that no key is zero


@dataclass(frozen=True, kw_only=True)
class SparseEvo(Attack):
    """Sets of pixels of a noisy image, which shrink while the image fools.

    Attributes:
        queries: Queries per image at most, in all.
        population: Number of sets per image.
        crossover: Probability that a pixel comes from the first of the two other members.
        mutation: Share of the child's pixels that is restored; None for the paper's on small
            images, 0.04 where a label is to be left and 0.01 where a target is to be reached.
        first: Share of the pixels that the first members lack.
        tries: Noisy images that are tried at most, to find one that fools.
        unit: Whether sets are of "pixels", as in the paper, or of "elements".
    """

    card: ClassVar[Card] = Card(
        name="sparse_evo",
        title="SparseEvo",
        norm="l0",
        unit="pixels",
        kind="minimal",
        access="labels",
        targeted=True,
        masked=True,
        random=True,
        starts=True,
        paper="arXiv:2202.00091",
        differences=(
            "Where no smaller set fools, a first member is the whole set; in the authors' code "
            "it stays at infinite distance.",
            "A set that lacks one pixel of the best is asked about once, and an image leaves "
            "when there is none left to ask about.",
            "The queries for the noise are counted, and none is made beyond the limit.",
            "A noisy pixel has a random colour.",
            "Elements and the mask of allowed places are ours.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"queries": 1000},
        "imagenet": {"queries": 20_000, "mutation": 0.004},
        "imagenet_targeted": {"queries": 20_000, "mutation": 0.001},
    }

    queries: int = setting(2000, least=1)
    population: int = setting(10, least=3)
    crossover: float = setting(0.5, least=0, most=1)
    mutation: float | None = setting(None, above=0, below=1)
    first: float = setting(0.004, above=0, below=1)
    tries: int = setting(100, least=1)
    unit: Literal["elements", "pixels"] = "pixels"

    def facts(self) -> Card:
        return replace(self.card, unit=self.unit, max_forwards=self.queries, max_backwards=0)

    def __call__(self, problem: Problem) -> Images:
        starts = find_starts(problem, self._noise, tries=self.tries, queries=self.queries)
        adv, rows = problem.images.clone(), starts.met.nonzero().flatten()
        part, left = problem[rows], self.queries - starts.asked[rows]
        people = Population(part.images, starts.images[rows], Units(self.unit), self.population)
        self._begin(part, people, left)
        mutation = self._mutation(problem.goal)
        for step in range(self.queries):
            done = (left == 0) | part.refused | people.finished
            if done.any():
                gone = people[done]
                adv[rows[done]] = gone.made(gone.best)
                stay = (~done).nonzero().squeeze(1)
                rows, part, people, left = rows[stay], part[stay], people[stay], left[stay]
            if not len(rows):
                break
            child = people.child(part, crossover=self.crossover, mutation=mutation, step=step)
            people.learn(child, part.goal.met(part.logits(people.made(child))))
            left = left - 1
        adv[rows] = people.made(people.best)
        return adv

    def _noise(self, problem: Problem, number: int) -> Images:
        share = (number + 1) / self.tries
        return salt_and_pepper(problem, share, step=number, use="sparse_evo, noise")

    def _begin(self, problem: Problem, people: "Population", left: Counts) -> None:
        """Make the first members, one query per image at a time; ``left`` falls."""
        whole = people.best.sum(dim=1)
        most = max(1, int(self.first * people.best.shape[1]))
        number = (whole - 1).clamp_max(most)  # of pixels to leave out; at least one stays
        without, member = number.clone(), torch.zeros_like(number)
        rows = ((number > 0) & (left > 0)).nonzero().flatten()
        for step in range(self.queries):
            if not len(rows):
                break
            part = problem[rows]
            sets = people.thinned(part, rows, without[rows], most, step)
            met = part.goal.met(part.logits(people.made(sets, rows)))
            people.place(rows, member[rows], sets, met)
            left[rows] -= 1
            fewer = (without[rows] - 1).masked_fill(met, 0)
            member[rows] += fewer == 0
            without[rows] = torch.where(fewer == 0, number[rows], fewer)
            done = (member[rows] == self.population) | (left[rows] == 0) | part.refused
            rows = rows[~done]
        people.rank()

    def _mutation(self, goal: Goal) -> float:
        return by_goal(self.mutation, goal, label=0.04, target=0.01)


class Population(BatchRows):
    """Sets of units, all of which fool, ordered by their distance from the clean image.

    A child lies inside the best set and lacks at least one of its units. So a child that fools is
    nearer to the clean image than any other set, in every norm: it is the new best, and no
    distances are compared.

    Attributes:
        masks: The sets, (batch, member, unit).
        order: The members of each image by distance, the nearest first, (batch, member).
        tried: Units without which the best is known not to fool, (batch, unit).

    Args:
        images: The clean images.
        start: Images that fool; the sets are parts of where they differ.
        units: What a set is made of.
        size: Number of members, all of them the whole set at first.
    """

    def __init__(self, images: Images, start: Images, units: Units, size: int) -> None:
        self._images, self._start, self._units = images, start, units
        whole = units.changed(start, images)
        self.masks = whole.unsqueeze(1).repeat(1, size, 1)
        self.order = torch.arange(size, device=whole.device).repeat(len(whole), 1)
        self.tried = torch.zeros_like(whole)
        self._row = torch.arange(len(whole), device=whole.device)

    def __getitem__(self, rows: Rows | slice) -> "Population":
        cut = super().__getitem__(rows)
        cut._row = torch.arange(len(cut.order), device=cut.order.device)
        return cut

    @property
    def best(self) -> Tensor:
        """The nearest set."""
        return self._member(self.order[:, 0])

    @property
    def finished(self) -> Mask:
        """Where one unit is left, or every possible child was queried before."""
        best = self.best
        count, stuck = best.sum(dim=1), (self.tried | ~best).all(dim=1)
        if stuck.any():  # members that lack a unit of the best may still make other children
            lacking = (best[stuck].unsqueeze(1) & ~self.masks[stuck]).flatten(1).any(dim=1)
            stuck[stuck.clone()] = ~lacking | (count[stuck] == 2)
        return stuck | (count <= 1)

    def thinned(
        self, problem: Problem, rows: Labels, number: Counts, most: int, step: int
    ) -> Tensor:
        """The whole set of some images without a number of its units, for a first member."""
        whole = self._units.changed(self._start[rows], self._images[rows])
        return whole & ~_draw(problem, whole, number, most, step, "sparse_evo, first")

    def place(self, rows: Labels, member: Labels, sets: Tensor, chosen: Mask) -> None:
        """Put ``sets`` in the place of one member of some images, where ``chosen``."""
        self.masks[rows[chosen], member[chosen]] = sets[chosen]

    def rank(self) -> None:
        """Order the members by their l2 distance from the clean image."""
        squares = (self._start - self._images).double().square()
        distance = (self._units.total(squares).unsqueeze(1) * self.masks).sum(dim=2)
        self.order = distance.argsort(dim=1, stable=True)

    def child(self, problem: Problem, *, crossover: float, mutation: float, step: int) -> Tensor:
        """What the best has in common with a mixture of two others, less some units."""
        rng, size, best = problem.rng, self.order.shape[1], self.best
        one = rng.integers(size - 1, step=step, use="sparse_evo, one")
        two = rng.integers(size - 2, step=step, use="sparse_evo, two")
        two = two + (two >= one)  # never the same, and neither is the best
        first, second = (
            self._member(self.order.gather(1, 1 + rank.unsqueeze(1)).squeeze(1))
            for rank in (one, two)
        )
        draw = rng.uniform(best.shape[1], step=step, use="sparse_evo, cross")
        crossed = best & torch.where(draw < crossover, first, second)
        count = crossed.sum(dim=1)
        number = torch.minimum((mutation * count.double()).long().clamp_min(1), count - 1)
        fresh = crossed & ~self.tried  # the others are known to be needed
        again = (number != 1) | (crossed != best).any(dim=1) | ~fresh.any(dim=1)
        spare = torch.where(again.unsqueeze(1), crossed, fresh)
        most = max(1, int(mutation * best.shape[1]))
        return crossed & ~_draw(problem, spare, number, most, step, "sparse_evo, mutate")

    def learn(self, child: Tensor, met: Mask) -> None:
        """Replace the farthest member by a child that fools; note the units that are needed."""
        left_out = self.best & ~child
        single = (left_out.sum(dim=1) == 1) & ~met
        self.tried = (self.tried | (left_out & single.unsqueeze(1))) & ~met.unsqueeze(1)
        last = self.order[:, -1]
        self.masks[self._row, last] = torch.where(met.unsqueeze(1), child, self._member(last))
        self.order = torch.where(met.unsqueeze(1), self.order.roll(1, dims=1), self.order)

    def made(self, sets: Tensor, rows: Labels | None = None) -> Images:
        """The images that ``sets`` make, of all or of some."""
        images, start = self._images, self._start
        if rows is not None:
            images, start = images[rows], start[rows]
        return torch.where(self._units.spread(sets, images), start, images)

    def _member(self, which: Labels) -> Tensor:
        return self.masks[self._row, which]


def _draw(problem: Problem, sets: Tensor, number: Counts, most: int, step: int, use: str) -> Tensor:
    """A number of random units of each set; ``most`` bounds the numbers."""
    keys = problem.rng.uniform(sets.shape[1], step=step, use=use) + _ABOVE_ZERO
    return mask_largest(keys * sets, number, most)
