"""SA-MOO: evolve sets of k pixels that first fool the model and then change it by less.

Williams, Li: Black-box sparse adversarial attack via multi-objective optimisation. CVPR 2023.

An individual is a set of k pixels and a direction v in {-1, 0, 1} for each of their values:

    x' = clip(x + eps * v, 0, 1),        v = 0 with probability zeros, else -1 or 1

    a is preferred to b    if a fools and b does not,
                           or both fool and |a - x|_2 < |b - x|_2,
                           or neither fools and L(a) < L(b)

A generation makes as many children as there are individuals. Both parents of a pair exchange some
pixels; then some pixels of each child are replaced by random ones. The preferred ones of parents
and children survive. ``L`` is the margin where a label is to be left and the cross-entropy where a
target is to be reached. One forward pass per child, scores alone. After an image is fooled, the
rest of its queries make the change smaller. As values go to the ends of the box or stay, that
restores pixels.

With the published population of two both parents are the preferred one, so that crossing changes
nothing: a generation is two mutants of the best so far.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.attacks.sa_moo.individuals import Breeding, Individuals, Ranked
from pinprick.goal import Goal
from pinprick.parts.score_loss import blocks, by_goal, losses_of_candidates
from pinprick.parts.smallest_k import K, run_at_k
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.random import Streams
from pinprick.settings import pixel_distance, setting
from pinprick.types import Counts, Images, Mask


@dataclass(frozen=True, kw_only=True)
class SAMOO(Attack):
    """Sets of at most k pixels that evolve, first to fool and then to change less.

    Attributes:
        k: Number of pixels that may change, or "smallest" to seek the fewest for each image.
        queries: Queries per image at most, for each k that is tried.
        population: Number of individuals per image.
        zeros: Probability that a value of a pixel in the set stays as it is.
        crossover: Share of the k pixels that a parent takes from the other.
        mutation: Share of the k pixels that are replaced by random ones. None for the paper's: 0.4
            untargeted, 0.2 targeted.
        parents: "tournament" for the preferred of two at random, as in the authors' code, or
            "uniform" for any two, as in the paper.
        shrink: Whether to go on once an image is fooled, to make the change smaller.
        eps: Change of a value, where pixel values run from 0 to 1.
        unit: Whether k counts "pixels", as in the paper, or "elements".
        rounds: Values of k that are tried per image at most, if k is "smallest".
    """

    card: ClassVar[Card] = Card(
        name="sa_moo",
        title="SA-MOO",
        norm="l0",
        unit="pixels",
        kind="budget",
        access="scores",
        targeted=True,
        masked=True,
        starts=True,
        random=True,
        paper="Black-box sparse adversarial attack via multi-objective optimisation, CVPR 2023",
        revision=2,
        differences=(
            "Crossover is that of the paper. In the authors' code the second child copies the "
            "first parent onto itself, and positions are drawn with replacement.",
            "A child must be better than a parent to replace it.",
            "All queries are used, as in the paper. The authors' code stops at a squared l2 norm "
            "of 1e-5, which hardly ever happens.",
            "If fewer pixels are left outside the set than should be replaced, only that many "
            "are. If none is left, pixels of the set get new directions.",
            "Images need not be square.",
            "If no try fools, the one with the lowest loss is returned.",
            '`shrink=False`, masks, elements and `k="smallest"` are ours.',
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "imagenet": {"k": 150, "queries": 5000},
    }

    k: K = setting(24, least=1)
    queries: int = setting(1000, least=1)
    population: int = setting(2, least=2)
    zeros: float = setting(0.3, least=0, below=1)
    crossover: float = setting(0.1, above=0, most=1)
    mutation: float | None = setting(None, above=0, most=1)
    parents: Literal["tournament", "uniform"] = "tournament"
    shrink: bool = True
    eps: float = pixel_distance(1.0)
    unit: Literal["elements", "pixels"] = "pixels"
    rounds: int = setting(10, least=1)

    def facts(self) -> Card:
        return self.card.at_k(self.k, self.rounds, forwards=self.queries, unit=self.unit)

    def __call__(self, problem: Problem) -> Images:
        return run_at_k(problem, self._evolve, Units(self.unit), self.k, self.rounds)

    def _evolve(self, problem: Problem, k: Counts, near: Images, trial: int) -> tuple[Images, Mask]:
        """The best try at one k for each image, and where it fooled."""
        adv, met = problem.images.clone(), torch.zeros_like(k, dtype=torch.bool)
        rows = torch.arange(len(problem), device=k.device)  # images that are not finished
        part, units, use = problem, Units(self.unit), f"sa_moo, trial {trial}"
        breeding = Breeding(problem, units, k, zeros=self.zeros, eps=self.eps, use=use)
        ranked: Ranked | None = None
        for start in range(0, self.queries, self.population):
            numbers = range(start, min(start + self.population, self.queries))
            ranked = self._generation(part, breeding, ranked, near, numbers)
            done = self._finished(part, ranked, last=numbers.stop == self.queries)
            if done is None or not done.any():
                continue
            gone, best = rows[done], ranked[done]
            judged = best.cost[:, 0] < torch.inf  # not where every loss was NaN
            tries = breeding[done].made(best.people.first())
            adv[gone[judged]], met[gone] = tries[judged], best.met[:, 0]
            rows, part, near = rows[~done], part[~done], near[~done]
            breeding, ranked = breeding[~done], ranked[~done]
            if not len(rows):
                break
        return adv, met

    def _generation(
        self,
        problem: Problem,
        breeding: Breeding,
        ranked: Ranked | None,
        near: Images,
        numbers: range,
    ) -> Ranked:
        """The individuals that survive after those of these numbers are made and queried."""
        alone = self.population == 2 and self.parents == "tournament"  # the preferred of two is one
        if ranked is not None and not alone:
            one, other = self._pairs(problem.rng, numbers, f"{breeding.use}, parents")
        judged = [] if ranked is None else [ranked]
        for some in blocks(problem, len(numbers)):
            if ranked is None:
                people = breeding.begin(near, numbers[some])
            else:
                if alone:
                    people = ranked.people.first(len(numbers[some]))
                else:
                    people, others = (ranked.people.choose(x[:, some]) for x in (one, other))
                    people = breeding.cross(people, others, self.crossover, numbers[some])
                share = self._mutation(problem.goal)
                people = breeding.mutate(people, share, numbers[some])
            judged.append(_judge(problem, breeding, people))
        return Ranked.best(judged, self.population)

    def _pairs(self, rng: Streams, numbers: range, use: str) -> tuple[Tensor, Tensor]:
        """For each child its parent, and the other one of the pair, as ranks in the population."""
        shape, step = ((len(numbers) + 1) // 2, 2), numbers.start
        one = rng.integers(self.population, *shape, step=step, use=use)
        two = rng.integers(self.population - 1, *shape, step=step, use=f"{use}, rivals")
        two = two + (two >= one)  # never the same
        if self.parents == "tournament":
            pair = torch.minimum(one, two)  # the preferred ones stand first
        else:
            pair = torch.stack((one[:, :, 0], two[:, :, 0]), dim=2)
        number = len(numbers)  # two children per pair, one for the last of an odd number
        return pair.flatten(1)[:, :number], pair.flip(2).flatten(1)[:, :number]

    def _mutation(self, goal: Goal) -> float:
        return by_goal(self.mutation, goal, label=0.4, target=0.2)

    def _finished(self, problem: Problem, ranked: Ranked, *, last: bool) -> Mask | None:
        """Which images leave; None if none can."""
        if self.shrink and not problem.may_refuse and not last:
            return None
        done = torch.full_like(ranked.met[:, 0], last)
        if not self.shrink:
            done = done | ranked.met[:, 0]
        return done | problem.refused if problem.may_refuse else done


def _judge(problem: Problem, breeding: Breeding, people: Individuals) -> Ranked:
    """Query some individuals of each image; refused ones come last."""
    adv = breeding.made(people)
    loss, met = losses_of_candidates(problem, adv)
    change = adv.unflatten(0, loss.shape) - problem.images.unsqueeze(1)
    norm = change.double().square().flatten(2).sum(dim=2)
    return Ranked(people, met, torch.where(met, norm, loss.double()))
