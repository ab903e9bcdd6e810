"""Rounds of C&W L0, all images in lock-step: a step of Adam, and what follows where one is over."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from pinprick.attacks.cw_l0.freezing import choose_least
from pinprick.parts.adam import Adam
from pinprick.parts.best import Best
from pinprick.parts.cut import cut_state
from pinprick.parts.tanh_box import FARTHEST, from_free, slope, to_free
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Mask, Rows

_MARGIN = 0.01  # by which the goal is to be met
_SOLVED = 1e-4  # a hinge below this ends a round
_UNSEEN = 1e-4  # a change below this is none


class Pace(NamedTuple):
    """The settings of the attack that a round goes by."""

    steps: int
    lr: float
    last_weight: float
    ranking: Literal["paper", "reference"]
    share: float
    halve: bool


class Rounds:
    """Where each image stands: what is open, the point, Adam's means, ``c`` and its clock.

    ``kept_free`` and ``kept_weight`` are from the end of the last round; ``rank`` is the place of
    each unit in the order of freezing there, and ``number`` how many were frozen.
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

    def __getitem__(self, rows: Rows) -> "Rounds":
        return cut_state(self, rows, "problem", "adam")

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
        if solved.any():  # waits for the device, and spares a sort in most steps
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
            self._take_back(again)
        going = (~failed | again) & self.open.any(dim=1)
        return going & ~self.problem.refused if self.problem.may_refuse else going

    def _freeze(self, solved: Mask, scores: Tensor, changed: Tensor) -> None:
        """End the round of the images that are solved: freeze what did least, and start anew."""
        rank, number = choose_least(scores, self.open, changed, self.pace.share)
        wide, line = solved.view(-1, 1, 1, 1), solved.unsqueeze(1)
        self.rank = torch.where(line, rank, self.rank)
        self.number = torch.where(solved, number, self.number)
        self.kept_open = torch.where(line, self.open, self.kept_open)
        self.kept_weight = torch.where(solved, self.weight, self.kept_weight)
        self.free = torch.where(wide, self.free.clamp(-FARTHEST, FARTHEST), self.free)
        self.kept_free = torch.where(wide, self.free, self.kept_free)
        self._open_rest(solved)

    def _take_back(self, failed: Mask) -> None:
        """Go back to the end of the last round, and freeze half as many as then."""
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
