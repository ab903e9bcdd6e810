"""C&W L0: solve an l2 attack, freeze the pixels that contribute least, and repeat until it fails.

Carlini, Wagner: Towards evaluating the robustness of neural networks. IEEE S&P 2017.

    x'   = (tanh(u) + 1) / 2 where open, x where frozen
    minimise over u   |x' - x|_2^2 + c * max(margin(f(x')) + 0.01, 0)         by Adam

until the ``max`` is below 0.0001. That ends a round: the open units that contribute least are
frozen, Adam restarts from ``x'``, and ``c`` stays. After ``steps`` steps without success ``c`` is
doubled; once it reaches ``last_weight``, the image is done. With ``d = x' - x`` a unit contributes

    - sum g * d,   g = grad margin                   ranking "paper": how far it lowered the margin
    |sum d| * sum |grad of the loss above by u|      ranking "reference": about |d|^2

and a round freezes at most ``0.3 * sqrt(units changed)`` of the least, or up to the first above
0.01. One forward and one backward pass per step: both rankings need the gradient of the margin
only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.batch_rows import BatchRows
from pinprick.errors import BadInput
from pinprick.parts.adam import Adam
from pinprick.parts.best import Best
from pinprick.parts.box import FARTHEST, from_free, slope, to_free
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Counts, Images, Mask, PerImage

_MARGIN = 0.01  # by which the goal is to be met
_SOLVED = 1e-4  # a hinge below this ends a round
_UNSEEN = 1e-4  # a change below this is none
_MATTERS = 0.01  # the score of a unit that ends the freezing
_FREEZE = 0.3  # times the square root of the units changed: how many a round freezes


@dataclass(frozen=True, kw_only=True)
class CWL0(Attack):
    """C&W's l2 attack on fewer and fewer pixels, until it fails.

    Attributes:
        steps: Adam steps with one ``c``.
        lr: Adam's learning rate, in units of ``u``.
        weight: The first ``c``.
        last_weight: The first ``c`` that is too large to be tried.
        unit: What is frozen and counted, "pixels" or "elements".
        ranking: How units are ranked: by the formula of the "paper" or of its "reference" code.
        share: Freeze at least this share of the open units in a round, whatever their rank.
        halve: Whether a round that fails is repeated with half as many units, down to one.
        max_passes: Most passes for an image; None for as many as it takes.
    """

    card: ClassVar[Card] = Card(
        name="cw_l0",
        title="C&W L0",
        norm="l0",
        unit="pixels",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:1608.04644",
        differences=(
            "Changes below 0.0001 are removed before the query, so the counted image is the "
            "queried one. The authors' code only leaves them out of the count.",
            "Every image on the way is tested, and the sparsest that fools is returned.",
            "The distance is to the clean image itself.",
            "Untargeted goals use the margin, as targeted ones do.",
            "`share` and `halve` are ours. They enlarge the rounds and retry those that were "
            "too large.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "steps": 40,
            "lr": 0.1,
            "weight": 0.1,
            "last_weight": 100.0,
            "share": 0.1,
            "halve": True,
            "max_passes": 1000,
        }
    }

    steps: int = setting(1000, least=1)
    lr: float = setting(0.01, above=0)
    weight: float = setting(1e-3, above=0)
    last_weight: float = setting(2e6, above=0)
    unit: Literal["pixels", "elements"] = "pixels"
    ranking: Literal["paper", "reference"] = "paper"
    share: float = setting(0.0, least=0, below=1)
    halve: bool = False
    max_passes: int | None = setting(None, least=1)

    def __post_init__(self) -> None:
        if self.weight >= self.last_weight:
            raise BadInput(
                f"cw_l0 needs weight below last_weight, got {self.weight:g} and "
                f"{self.last_weight:g}"
            )

    def facts(self) -> Card:
        most = self.max_passes
        return replace(self.card, unit=self.unit, max_forwards=most, max_backwards=most)

    def __call__(self, problem: Problem) -> Images:
        best = Best(problem.images)
        pace = Pace(
            steps=self.steps,
            lr=self.lr,
            last_weight=self.last_weight,
            ranking=self.ranking,
            share=self.share,
            halve=self.halve,
        )
        rounds = Rounds(problem, Units(self.unit), self.weight, pace)
        for _ in count() if self.max_passes is None else range(self.max_passes):
            rounds = rounds[rounds.step(best)]
            if not len(rounds.rows):
                break
        return best.images


class Pace(NamedTuple):
    """The settings of the attack that a round uses."""

    steps: int
    lr: float
    last_weight: float
    ranking: Literal["paper", "reference"]
    share: float
    halve: bool


class Rounds(BatchRows):
    """The state of each image: open units, the point, Adam's means, ``c`` and its clock.

    All images move in lock-step, each in a round of its own. ``kept_free`` and ``kept_weight`` are
    from the end of the last round; ``rank`` is the index of each unit in the order of freezing
    there, and ``number`` the number of units that were frozen.
    """

    def __init__(self, problem: Problem, units: Units, weight: float, pace: Pace) -> None:
        self.problem, self.units, self.pace = problem, units, pace
        precise = torch.promote_types(problem.images.dtype, torch.float32)
        self.clean = problem.images.to(precise).contiguous()
        self.free, self.adam = to_free(self.clean), Adam(self.clean)
        self.rows = torch.arange(len(problem), device=self.clean.device)
        self.weight = self.clean.new_full((len(problem),), weight)
        self.clock = torch.zeros_like(self.rows)
        everything = torch.ones_like(self.clean, dtype=torch.bool)
        allowed = everything if problem.allowed is None else problem.allowed
        self.open = self.units.largest(allowed)
        self.number = torch.zeros_like(self.rows)
        self.rank = torch.zeros_like(self.open, dtype=torch.int32)
        self.kept_open, self.kept_free, self.kept_weight = self.open, self.free, self.weight

    def step(self, best: Best) -> Mask:
        """One pass for each image, and what follows from it; says who is not done."""
        goal, pace = self.problem.goal, self.pace
        movable = self.units.spread(self.open, self.clean)
        if self.problem.allowed is not None:
            movable = movable & self.problem.allowed
        delta = torch.where(movable, from_free(self.free) - self.clean, 0)
        seen = torch.where(delta.abs() < _UNSEEN, self.clean, self.clean + delta)
        asked = seen.clamp(0, 1).to(self.problem.images.dtype)
        logits, grad = self.problem.logits_and_gradient(asked, goal.margin)
        changed = self.units.count(asked, self.problem.images)
        met = goal.met(logits)
        best.offer(asked, changed, met, self.rows)

        hinge = (goal.margin(logits).to(delta.dtype) + _MARGIN).clamp_min(0)
        solved = met & (hinge < _SOLVED)
        push = torch.where(hinge > 0, self.weight, 0).view(-1, 1, 1, 1)
        rise = grad.to(delta.dtype)
        by_free = torch.where(movable, slope(self.free) * (2 * delta + push * rise), 0)
        moved = self.free - pace.lr * self.adam.step(by_free)
        self.free = torch.where(solved.view(-1, 1, 1, 1), self.free, moved)
        self.clock = self.clock + 1
        if solved.any():  # waits for the device, but saves a sort in most steps
            if pace.ranking == "paper":
                scores = self.units.total(-rise * delta)
            else:
                scores = self.units.total(delta).abs() * self.units.total(by_free.abs())
            self._freeze(solved, scores, changed)

        tired = (self.clock >= pace.steps) & ~solved
        self.weight = torch.where(tired, self.weight * 2, self.weight)
        self.clock = torch.where(tired, 0, self.clock)
        failed = self.weight >= pace.last_weight
        again = failed & (self.number > 1) if pace.halve else torch.zeros_like(failed)
        if pace.halve and again.any():
            self._retry_with_half(again)
        going = (~failed | again) & self.open.any(dim=1)
        return going & ~self.problem.refused if self.problem.may_refuse else going

    def _freeze(self, solved: Mask, scores: Tensor, changed: Tensor) -> None:
        """End the round of solved images: freeze the units of least score, and restart."""
        rank, number = choose_least(scores, self.open, changed, self.pace.share)
        wide, line = solved.view(-1, 1, 1, 1), solved.unsqueeze(1)
        self.rank = torch.where(line, rank, self.rank)
        self.number = torch.where(solved, number, self.number)
        self.kept_open = torch.where(line, self.open, self.kept_open)
        self.kept_weight = torch.where(solved, self.weight, self.kept_weight)
        self.free = torch.where(wide, self.free.clamp(-FARTHEST, FARTHEST), self.free)
        self.kept_free = torch.where(wide, self.free, self.kept_free)
        self._open_rest(solved)

    def _retry_with_half(self, failed: Mask) -> None:
        """Return to the end of the last round and freeze half as many units."""
        self.number = torch.where(failed, self.number // 2, self.number)
        self.weight = torch.where(failed, self.kept_weight, self.weight)
        self.free = torch.where(failed.view(-1, 1, 1, 1), self.kept_free, self.free)
        self._open_rest(failed)

    def _open_rest(self, rows: Mask) -> None:
        """Begin a round with all but the first ``number`` units of the last one's order."""
        rest = self.kept_open & (self.rank >= self.number.unsqueeze(1))
        self.open = torch.where(rows.unsqueeze(1), rest, self.open)
        self.clock = torch.where(rows, 0, self.clock)
        self.adam.restart(rows)


def choose_least(
    scores: Tensor, is_open: Tensor, changed: PerImage, share: float
) -> tuple[Tensor, Counts]:
    """The index of each unit in the order of freezing, and how many to freeze.

    Args:
        scores: What each unit contributed, (batch, unit).
        is_open: Units that are not frozen yet; the others come last.
        changed: Number of changed units per image.
        share: At least this share of the open units is frozen.
    """
    ranked, order = scores.masked_fill(~is_open, torch.inf).sort(dim=1, stable=True)
    places = torch.arange(scores.shape[1], device=scores.device, dtype=torch.int32)
    rank = torch.empty_like(order, dtype=torch.int32).scatter_(1, order, places.expand_as(order))
    few = (_FREEZE * changed.sqrt()).ceil().clamp_min(1).long()
    few = torch.minimum(few, 1 + (ranked <= _MATTERS).sum(dim=1))
    return rank, torch.maximum(few, (share * is_open.sum(dim=1)).ceil().long())
