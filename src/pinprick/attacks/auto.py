"""Auto: the worst case over several attacks, for one number that can be trusted.

Our own. What AutoAttack (Croce and Hein, ICML 2020) is for l-infinity: attacks that fail for
different reasons run one after another, each on the images that those before did not fool, and the
best of all is returned per image.

    Pinprick                               the fewest units, by gradients
    sparse-PGD, unprojected and projected  at each budget k at which an image is still correct
    Sparse-RS                              the same again, without gradients
    Pinprick, other random numbers         once more where Sparse-RS found fewer units

An image is correct at k while no change of at most k units has fooled. Budgets are tried from the
smallest up, each search from the clean image. Sparse-RS is a check: if it finds fewer units than
both gradient searches, gradients may be masked, and results that need them are not reliable.
``result.beaten_by_scores`` says for which images. If a model gives only scores, only Sparse-RS
runs.

The sparse-AutoAttack of the paper of sparse-PGD (arXiv:2405.05075) joins sparse-PGD and Sparse-RS
at a single k.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch

from pinprick.attacks.card import Attack, Card
from pinprick.attacks.pinprick.attack import EFFORTS, Pinprick
from pinprick.attacks.sparse_pgd import SparsePGD
from pinprick.attacks.sparse_rs import SparseRS
from pinprick.errors import BadInput
from pinprick.parts.best import Best
from pinprick.parts.smallest_k import Core
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images, Mask


@dataclass(frozen=True, kw_only=True)
class Auto(Attack):
    """Pinprick, then sparse-PGD and Sparse-RS on images still correct at a budget; the best of all.

    Attributes:
        budgets: Numbers of units at which the fixed-k attacks are run.
        unit: What is counted: "pixels" (all channels of a pixel) or "elements" (channel values).
        effort: Passes of Pinprick: "fast" 100, "balanced" 500, "thorough" 1000 at the most.
        steps: Steps of sparse-PGD per budget, for each of its two forms.
        queries: Queries of Sparse-RS per budget; Pinprick's second search has as many passes,
            or those of ``effort`` if that is more.
    """

    card: ClassVar[Card] = Card(
        name="auto",
        title="Auto",
        norm="l0",
        unit="pixels",
        kind="minimal",
        access="gradients",
        least_access="scores",
        targeted=True,
        masked=True,
        random=True,
        paper="",
        revision=6,
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"effort": "fast", "steps": 60, "queries": 100},
        "thorough": {"effort": "thorough", "steps": 1000, "queries": 10_000},
    }

    budgets: tuple[int, ...] = setting((5, 10, 20, 50), least=1)
    unit: Literal["elements", "pixels"] = "pixels"
    effort: Literal["fast", "balanced", "thorough"] = "balanced"
    steps: int = setting(300, least=1)
    queries: int = setting(1000, least=1)

    def __post_init__(self) -> None:
        if not self.budgets:
            raise BadInput("auto needs at least one budget, got ()")

    def facts(self) -> Card:
        number, alike = len(set(self.budgets)), EFFORTS[self.effort] + self._second_passes
        return replace(
            self.card,
            unit=self.unit,
            max_forwards=alike + number * (2 * (self.steps + 1) + self.queries),
            max_backwards=alike + number * 2 * self.steps,
        )

    @property
    def _second_passes(self) -> int:
        return max(EFFORTS[self.effort], self.queries, 2)

    def __call__(self, problem: Problem) -> Images:
        best = Best(problem.images)
        if problem.gives_gradients:
            with problem.stage("pinprick"):
                adv = Pinprick(effort=self.effort, unit=self.unit)(problem)
            everyone = torch.arange(len(problem), device=adv.device)
            fooled = (adv != problem.images).flatten(1).any(dim=1)  # a failure is returned clean
            self._offer(problem, best, adv, fooled, everyone, "pinprick")
        by_gradients = best.cost
        for name, core in self._fixed_k_attacks(problem):
            by_gradients = best.cost.clone() if name == "sparse_rs" else by_gradients
            for k in sorted(set(self.budgets)):
                rows = (best.cost > k).nonzero().flatten()
                if not len(rows):
                    break
                part = problem[rows]
                with problem.stage(name):
                    adv, fooled = core(part, torch.full_like(rows, k), part.images, 0)
                self._offer(part, best, adv, fooled, rows, name)
        if problem.gives_gradients:
            self._look_again(problem, best, (best.cost < by_gradients).nonzero().flatten())
        return best.images

    def _look_again(self, problem: Problem, best: Best, rows: torch.Tensor) -> None:
        """Run Pinprick again where scores found fewer units; it wins a tie."""
        if not len(rows):
            return
        part, name = problem[rows].reseeded(1), "pinprick_again"
        with problem.stage(name):
            adv = Pinprick(max_forwards=self._second_passes, unit=self.unit)(part)
        count = Units(self.unit).count(adv, part.images)
        as_few = (count > 0) & (count <= best.cost[rows])  # a failure is returned clean
        part.credit(as_few, name)
        best.images[rows[as_few]] = adv[as_few]
        best.cost[rows[as_few]] = count[as_few].to(best.cost.dtype)

    def _fixed_k_attacks(self, problem: Problem) -> Iterator[tuple[str, Core]]:
        """The attacks at a fixed k, each with its name, in order."""
        if problem.gives_gradients:
            for projected in (False, True):
                white = SparsePGD(steps=self.steps, projected=projected, unit=self.unit)
                yield "sparse_pgd", white.descend
        yield "sparse_rs", SparseRS(queries=self.queries, unit=self.unit).search

    def _offer(
        self,
        problem: Problem,
        best: Best,
        adv: Images,
        fooled: Mask,
        rows: torch.Tensor,
        name: str,
    ) -> None:
        """Save what is sparser, and which attack found it."""
        count = Units(self.unit).count(adv, problem.images)
        problem.credit(fooled & (count < best.cost[rows]), name)
        best.offer(adv, count, fooled, rows)
