"""WI-FGSM without one of the departures from the paper that have no setting.

The plans of WI-FGSM name these attacks, so that the page of ``wifgsm`` can say what each departure
brings. Other departures are left out by a setting, such as ``turn = false``.
"""

from dataclasses import dataclass

import torch

from pinprick.attacks import IFGSM, WIFGSM
from pinprick.goal import Goal
from pinprick.parts.best import Best
from pinprick.parts.heaviside import apply_gates, room
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Mask, PerImage

_PRINTED = 1e-2 * 1e5  # the paper's learning rate and the scale of the loss in the authors' code


@dataclass(frozen=True, kw_only=True)
class WithoutScale(WIFGSM):
    """A step follows the size of the gradient and the radius of I-FGSM, as in the paper."""

    def _scale(self, force: Images) -> Images:
        return force * (_radius(self) ** 2 * _PRINTED / self.step_size)


@dataclass(frozen=True, kw_only=True)
class WithoutEqualSizes(WIFGSM):
    """A gate acts in proportion to the change of I-FGSM, as in the paper; its sides are kept."""

    turn: bool = False

    def _sides(self, change: Images) -> Images:
        return change / _radius(self)

    def _apply(self, gates: Images, x: Images, sides: Images) -> tuple[Images, Images, Images]:
        _, soft, hard = super()._apply(gates, x, sides)
        return torch.where(sides == 0, 0, (soft - x) / sides), soft, hard


@dataclass(frozen=True, kw_only=True)
class WithoutBound(WIFGSM):
    """x_w may leave [0, 1] while gates are learnt, as in the paper."""

    def _apply(self, gates: Images, x: Images, sides: Images) -> tuple[Images, Images, Images]:
        change = gates * sides
        hard = apply_gates(x, change.sign(), room(x, change, self.box), gates.abs())
        return gates, x + change, hard

    def _learn(
        self, problem: Problem, towards: Goal, sides: Images, gates: Images, best: Best
    ) -> None:
        inside = _BestInside(problem.images)
        super()._learn(problem, towards, sides, gates, inside)
        best.offer(inside.images, inside.cost, inside.cost.isfinite())


@dataclass(frozen=True, kw_only=True)
class WithoutSecondTry(WIFGSM):
    """Images that nothing has fooled are given up, as in the paper."""

    def __call__(self, problem: Problem) -> Images:
        best, sides = Best(problem.images), torch.ones_like(problem.images)
        self._learn(problem, problem.goal, sides, torch.zeros_like(sides), best)
        return best.images


@dataclass(frozen=True, kw_only=True)
class WithoutSparsest(WIFGSM):
    """The last x* is returned and not the sparsest image that fooled, as in the paper."""

    def _learn(
        self, problem: Problem, towards: Goal, sides: Images, gates: Images, best: Best
    ) -> None:
        last = _Last(problem.images)
        super()._learn(problem, towards, sides, gates, last)
        best.offer(last.images, last.cost, last.cost.isfinite())


class _BestInside(Best):
    """The best of the candidates that lie in [0, 1]."""

    def offer(
        self, candidates: Images, cost: PerImage, met: Mask, rows: Labels | None = None
    ) -> None:
        inside = ((candidates >= 0) & (candidates <= 1)).flatten(1).all(dim=1)
        super().offer(candidates, cost, met & inside, rows)


class _Last(Best):
    """The last x*, if it met the goal. Candidates come in turn: x*, x_w, x*, x_w."""

    def __init__(self, images: Images) -> None:
        super().__init__(images)
        self.final = True

    def offer(
        self, candidates: Images, cost: PerImage, met: Mask, rows: Labels | None = None
    ) -> None:
        if self.final:
            self.images, self.cost = candidates, torch.where(met, cost, torch.inf)
        self.final = not self.final


def _radius(attack: WIFGSM) -> float:
    assert isinstance(attack.start, IFGSM)
    return attack.start.eps
