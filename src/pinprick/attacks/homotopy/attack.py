"""Homotopy: proximal steps under a price per changed element that falls until the goal is met.

Zhu, Chen, Wang: Sparse and imperceptible adversarial attack via a homotopy algorithm. ICML 2021.

    min over d of  L(x + d) + lambda |d|_0    with  |d|_inf <= eps,  x + d in [0, 1]

for a falling sequence of lambda, each from where the last one ended:

    lambda = min(decay * lambda, just below the one at which the next element wakes up)
    d      = nmAPG(d, lambda), with at most ``growth`` elements more        nmapg.py
    d      = d after gradient steps on its own elements, where they are not at the end of their room

until ``x + d`` fools; then the largest changes are made as small as bisection can. L is the hinge
of the margin, or the cross-entropy to a target. A step of nmAPG takes one forward and one backward
pass, and a forward pass per proximal step that is tried.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from pinprick.attacks.card import Attack, Card
from pinprick.attacks.homotopy.nmapg import (
    HALVINGS,
    Box,
    Look,
    Penalised,
    adversarial,
    descend,
    prox,
    waking_lambda,
)
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.types import Images, Mask, PerImage

_REACH = 20  # the largest step: multiple of eps for the element of steepest gradient
_SHORTER = 4  # divisor of the step after a round that moved nothing
_LEAST_REACH = 0.05  # the smallest step, as a multiple of eps
_JUST_BELOW = 0.99
_PATIENCE = 4  # rounds in which refinements alone may move an image
_CAREFUL = 20  # divisor of the elements that may join after a refinement
_REFINE_STEP = 0.1  # as a share of eps


@dataclass(frozen=True, kw_only=True)
class Homotopy(Attack):
    """A price on every changed element that falls, and proximal steps that pay it.

    Attributes:
        eps: The most that a value may change, where pixel values run from 0 to 1.
        rounds: Give up on an image after this many values of lambda.
        decay: Factor of lambda from round to round.
        steps: The most steps of nmAPG in a round.
        growth: The most elements that join in a round.
        gamma: Refine if the changes take up at most this share of their room.
        refine_steps: The most gradient steps of a refinement; 0 for none.
        shrink_steps: Bisections of the largest change at the end; 0 for none.
    """

    card: ClassVar[Card] = Card(
        name="homotopy",
        title="Homotopy",
        norm="l0",
        unit="elements",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:2106.06027",
        revision=2,
        differences=(
            "The momentum follows Li and Lin. The authors' code never updates its weight, so "
            "the momentum points backwards.",
            "The running bound C of accepted steps follows Li and Lin. The authors' code "
            "updates it with the new q instead of the old.",
            "Lambda starts in closed form just below the value at which the first element "
            "changes. It skips values at which nothing would change.",
            "The authors' code finds its first lambda by thousands of trials. It starts above "
            "that value, and an artificial step of 1e5 makes the first change.",
            "The largest step is 20 `eps` over the steepest gradient. It is quartered after a "
            "round without change and doubled after one with change.",
            "At the shortest step, 0.05 `eps`, one element joins without a test of the price "
            "if nothing else changes.",
            "A proximal step is halved at most five times. The authors' code multiplies it by "
            "0.8 up to 1000 times.",
            "The sufficient decrease of F is a tenth over the largest step. The authors' "
            "constant is 0.3, whatever the size of the loss.",
            "If too many elements would join, those of largest gain do. The authors' code "
            "chooses by size.",
            "The refinement takes at most `refine_steps` normalised gradient steps on the loss "
            "alone. The authors' adds an l-infinity term and takes 200 to 1200 steps.",
            "After a refinement at most a twentieth of `growth` joins in the next round. In "
            "the authors' code it is 10 elements of 200.",
            "An element at the end of the box counts as at the end of its range. In the "
            "authors' code only the ball counts.",
            "A bisection shrinks the final change of images that fool. The authors' code takes "
            "up to 40,000 steps of 1e-3, for failures too.",
            "An image is given up after `rounds` values of lambda. The authors' code gives up "
            "at 95 % of the elements.",
            "Defaults are for small images and the whole box: `eps` 1 (paper 0.05), `steps` 30 "
            "(100), `growth` 5 (200).",
        ),
    )

    eps: float = pixel_distance(1.0)
    rounds: int = setting(200, least=1)
    decay: float = setting(0.98, above=0, most=1)
    steps: int = setting(30, least=1)
    growth: int = setting(5, least=1)
    gamma: float = setting(0.8, above=0, most=1)
    refine_steps: int = setting(10, least=0)
    shrink_steps: int = setting(8, least=0)

    def facts(self) -> Card:
        descent = self.steps * 2 * (1 + HALVINGS)
        forwards = self.rounds * (1 + descent + self.refine_steps) + self.shrink_steps
        backwards = self.rounds * (1 + 2 * self.steps + self.refine_steps)
        return replace(self.card, max_forwards=forwards, max_backwards=backwards)

    def __call__(self, problem: Problem) -> Images:
        precise = torch.promote_types(problem.images.dtype, torch.float32)
        clean = problem.images.to(precise)
        box = Box((-clean).clamp_min(-self.eps), (1 - clean).clamp_max(self.eps))
        found, delta = torch.zeros_like(clean), torch.zeros_like(clean)
        lam = clean.new_full((len(clean),), torch.inf)
        growth = torch.full_like(problem.goal.labels, self.growth)
        reach = torch.full_like(lam, _REACH * self.eps)
        idle = torch.zeros_like(growth)  # rounds in which nmAPG moved nothing
        rows = torch.arange(len(clean), device=clean.device)  # images still on their way
        for _ in range(self.rounds):
            here = delta[rows]
            most = (here != 0).flatten(1).sum(dim=1) + growth[rows]
            penalised = Penalised(problem[rows], box[rows], lam[rows], lam[rows], most)
            seen = penalised.look(here)
            penalised = self._next_lambda(penalised, here, seen, reach[rows])
            found[rows[seen.met]] = here[seen.met]  # after a refinement
            go = (
                ~seen.met & penalised.rate.isfinite() & (penalised.lam > 0)
            )  # else nothing could move
            rows, penalised, seen, here = rows[go], penalised[go], seen[go], here[go]
            if not len(rows):
                break
            lam[rows] = penalised.lam
            moved, met = descend(penalised, here, seen, self.steps)
            found[rows[met]] = moved[met]
            idle[rows] = torch.where((moved == here).flatten(1).all(dim=1), idle[rows] + 1, 0)
            loose = ~met & self._loose(moved, penalised.box)
            if self.refine_steps and loose.any():
                moved[loose] = self._refined(penalised[loose], moved[loose])
            growth[rows] = torch.where(loose, max(1, self.growth // _CAREFUL), self.growth)
            stuck = (moved == here).flatten(1).all(dim=1)  # try shorter steps
            stuck |= idle[rows] >= _PATIENCE  # even if a refinement moves it
            longer = (2 * reach[rows]).clamp_max(_REACH * self.eps)
            shorter = (reach[rows] / _SHORTER).clamp_min(_LEAST_REACH * self.eps)
            forced = stuck & (reach[rows] == shorter)  # no shorter ones: one element all the same
            moved = torch.where(forced.view(-1, 1, 1, 1), _one_more(penalised, here, seen), moved)
            reach[rows] = torch.where(stuck, shorter, longer)
            delta[rows] = moved
            rows = rows[~met]
            if not len(rows):
                break
        return self._shrunk(problem, found, box)

    def _next_lambda(
        self, penalised: Penalised, delta: Images, seen: Look, reach: PerImage
    ) -> Penalised:
        """The next round: the largest step, and a lambda under which it moves."""
        rate = reach / seen.grad.abs().flatten(1).amax(dim=1)
        wakes = waking_lambda(delta, seen.grad, rate, penalised.box)
        return replace(
            penalised, rate=rate, lam=torch.minimum(self.decay * penalised.lam, _JUST_BELOW * wakes)
        )

    def _loose(self, delta: Images, box: Box) -> Mask:
        """Where the changed elements take up at most ``gamma`` of the room they have."""
        room = torch.where(delta > 0, box.high, box.low).abs()
        share = (delta.abs() / room.where(delta != 0, 1)).flatten(1)
        return share.sum(dim=1) <= self.gamma * (delta != 0).flatten(1).sum(dim=1)

    def _refined(self, penalised: Penalised, delta: Images) -> Images:
        """Gradient steps on the elements that are changed, until the goal is met."""
        delta, rows = delta.clone(), torch.arange(len(delta), device=delta.device)
        for _ in range(self.refine_steps):
            here = delta[rows]
            seen = penalised.look(here)
            slope = torch.where(here != 0, seen.grad, 0)
            steepest = slope.abs().amax(dim=(1, 2, 3), keepdim=True)
            step = _REFINE_STEP * self.eps * slope / steepest.where(steepest > 0, 1)
            delta[rows] = torch.where(
                seen.met.view(-1, 1, 1, 1), here, penalised.box.clip(here - step)
            )
            go = ~seen.met & (steepest > 0).flatten()
            rows, penalised = rows[go], penalised[go]
            if not len(rows):
                break
        return delta

    def _shrunk(self, problem: Problem, delta: Images, box: Box) -> Images:
        """The adversarial images, the largest changes cut down as far as bisection finds."""
        done = (delta != 0).flatten(1).any(dim=1)
        if self.shrink_steps and done.any():
            ones = delta.new_ones((int(done.sum()),))
            penalised = Penalised(problem[done], box[done], ones, ones, ones.long())
            best, high = delta[done], delta[done].abs().amax(dim=(1, 2, 3), keepdim=True)
            low = torch.zeros_like(high)
            for _ in range(self.shrink_steps):
                cap = (low + high) / 2
                tried = best.clamp(-cap, cap)
                met = penalised.judge(tried)[1].view(-1, 1, 1, 1)
                best, high = torch.where(met, tried, best), torch.where(met, cap, high)
                low = torch.where(met, low, cap)
            delta = delta.index_put((done,), best)
        return adversarial(problem, delta)


def _one_more(penalised: Penalised, delta: Images, seen: Look) -> Images:
    """A proximal step that one element may join, wherever it leads."""
    points = delta - penalised.rate.view(-1, 1, 1, 1) * seen.grad
    most = (delta != 0).flatten(1).sum(dim=1) + 1
    return prox(points, penalised.rate, penalised.lam, most, penalised.box)
