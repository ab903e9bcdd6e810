"""JSMA: step by step, the pair of elements that lifts one class most and the others least.

Papernot, McDaniel, Jha, Fredrikson, Celik, Swami: The limitations of deep learning in adversarial
settings. EuroS&P 2016.

    a_i = dF_t / dx_i,    b_i = sum_{j != t} dF_j / dx_i          the two rows that matter of the
                                                                  Jacobian
    (p, q) = argmax  -(a_p + a_q) * (b_p + b_q)    with  a_p + a_q > 0  and  b_p + b_q < 0
    x_p = x_p + theta,  x_q = x_q + theta          an element at the edge of the box is out

That is "up"; "down" takes ``theta`` away and turns both signs. ``t`` is the target and ``F`` the
softmax, of which what one class gains the others lose: b = -a. One forward and one backward pass a
step, whatever the number of classes; two backward passes where ``F`` are the logits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.parts.best import Best
from pinprick.parts.choose_units import scaled
from pinprick.parts.largest import find_largest
from pinprick.parts.rivals import rivals_of
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images, Labels, Logits

_CHUNK = 128  # elements that are paired with all others at a time


@dataclass(frozen=True, kw_only=True)
class JSMA(Attack):
    """Greedy steps of one pair of elements, or one element, by the saliency of the Jacobian.

    Attributes:
        steps: Most steps towards a class; the paper's 14.5 % of an MNIST image are 56 pairs.
        theta: How far an element goes in a step, where pixel values run from 0 to 1.
        direction: Whether elements go "up", "down", or "both" ways, each where it helps.
        pairs: Whether a step takes two elements or one.
        output: What is differentiated, the "softmax" of the paper or the "logits".
        rivals: How many classes are headed for, where there is no target.
    """

    card: ClassVar[Card] = Card(
        name="jsma",
        title="JSMA",
        norm="l0",
        unit="elements",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:1511.07528",
        revision=2,
        differences=(
            "The paper has no untargeted form. Ours tries the `rivals` most likely classes in "
            "turn, accepts any class but the label, and returns the sparsest image.",
            "The gradient is that of the logarithm of the softmax. It ranks alike and does not "
            "vanish if the network is confident.",
            "The best pair is exact, in memory linear in the size of the image.",
            '`direction="both"` and single elements are ours.',
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"direction": "both", "rivals": 3},
    }

    steps: int = setting(250, least=1)
    theta: float = setting(1.0, above=0, most=1)
    direction: Literal["up", "down", "both"] = "up"
    pairs: bool = True
    output: Literal["logits", "softmax"] = "softmax"
    rivals: int = setting(1, least=1)

    def facts(self) -> Card:
        slopes = 1 if self.output == "softmax" else 2
        return replace(
            self.card,
            max_forwards=1 + self.rivals * (self.steps + 1),
            max_backwards=self.rivals * self.steps * slopes,
        )

    def __call__(self, problem: Problem) -> Images:
        found = Best(problem.images)
        if problem.goal.targets is not None:
            self._climb(problem, problem.goal.targets, found)
            return found.images
        clean = problem.logits(problem.images)
        for target in rivals_of(clean, problem.goal.labels, self.rivals).unbind(dim=1):
            self._climb(problem, target, found)
        return found.images

    def _climb(self, problem: Problem, target: Labels, found: Best) -> None:
        """Lift one class of each image until the goal is met or more is spent than before."""
        units, adv = Units("elements"), problem.images.clone()
        rows = torch.arange(len(adv), device=adv.device)  # images still on their way
        for _ in range(self.steps):
            part, x = problem[rows], adv[rows]
            rise, fall, logits = self._saliency(part, x, target[rows])
            count, met = units.count(x, part.images), part.goal.met(logits)
            found.offer(x, count, met, rows)
            move, worth = self._choose(rise, fall)
            adv[rows] = self._moved(x, move)
            rows = rows[(count < found.cost[rows]) & (worth > 0)]
            if not len(rows):
                return
        part, x = problem[rows], adv[rows]
        found.offer(x, units.count(x, part.images), part.goal.met(part.logits(x)), rows)

    def _saliency(
        self, problem: Problem, adv: Images, target: Labels
    ) -> tuple[Tensor, Tensor, Logits]:
        """How much each move lifts the target and lowers the others, and the logits.

        A move is an element on its way up or, after all of these, one on its way down. Minus
        infinity stands where an element may not move so.
        """

        def outputs(logits: Logits) -> Tensor:
            if self.output == "softmax":
                return logits.log_softmax(dim=1).gather(1, target.unsqueeze(1))
            own = logits.gather(1, target.unsqueeze(1))
            return torch.cat((own, own - logits.sum(dim=1, keepdim=True)), dim=1)

        logits, gradients = problem.logits_and_gradients(adv, outputs)
        slopes = [scaled(gradient.float()).flatten(1) for gradient in gradients]
        spent = (adv != problem.images) & ((adv >= 1) | (adv <= 0))  # at the edge, and it stays
        if problem.allowed is not None:
            spent |= ~problem.allowed
        out = torch.cat([(spent | edge).flatten(1) for edge in (adv >= 1, adv <= 0)], dim=1)
        if self.direction != "both":
            elements = slopes[0].shape[1]
            out[:, elements:] |= self.direction == "up"
            out[:, :elements] |= self.direction == "down"
        two = slopes[0], slopes[-1]  # one and the same for softmax
        rise, fall = (torch.cat((slope, -slope), dim=1) for slope in two)
        return rise.masked_fill(out, -torch.inf), fall.masked_fill(out, -torch.inf), logits

    def _choose(self, rise: Tensor, fall: Tensor) -> tuple[Tensor, Tensor]:
        """The moves to make and what they are worth; nothing where that is not above zero."""
        if self.pairs:
            return best_pair(rise, fall)
        worth = (rise * fall).masked_fill((rise <= 0) | (fall <= 0), -torch.inf)
        most, move = worth.max(dim=1, keepdim=True)
        return move, most.squeeze(1)

    def _moved(self, adv: Images, moves: Tensor) -> Images:
        """``adv`` after some moves of each image."""
        flat = adv.flatten(1)
        place = moves % flat.shape[1]
        change = torch.where(moves < flat.shape[1], self.theta, -self.theta).to(flat.dtype)
        moved = (flat.gather(1, place) + change).clamp(0, 1)
        return flat.scatter(1, place, moved).view_as(adv)


def best_pair(a: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The indices of the best pair in each row, (batch, 2), and its score; minus infinity if none.

    With gains ``a`` and ``c`` of each element, the best pair has the largest

        (a_p + a_q) * (c_p + c_q),      both sums above zero.

    Replacing p by an element whose gains are no smaller never lowers this. An element outside the
    first two Pareto layers has two such elements above it, one of which is not q. So the best pair
    lies within these two layers, which hold some dozens of elements out of thousands. The answer is
    exact, in memory linear in the number of elements. Gains of minus infinity take no part.
    """
    places, there = two_layers(a, c)
    a = a.gather(1, places).masked_fill(~there, -torch.inf)
    c = c.gather(1, places).masked_fill(~there, -torch.inf)
    number = torch.arange(places.shape[1], device=a.device)
    best = torch.full_like(a[:, 0], -torch.inf)
    pair = places.new_zeros((len(a), 2))
    for start in range(0, places.shape[1], _CHUNK):
        first = number[start : start + _CHUNK]
        rise = a[:, first].unsqueeze(2) + a.unsqueeze(1)
        fall = c[:, first].unsqueeze(2) + c.unsqueeze(1)
        fits = (rise > 0) & (fall > 0) & (first.unsqueeze(1) < number)
        worth = (rise * fall).masked_fill(~fits, -torch.inf).flatten(1)
        most, at = worth.max(dim=1)
        found = torch.stack((at // len(number) + start, at % len(number)), dim=1)
        better = most > best
        best = torch.where(better, most, best)
        pair = torch.where(better.unsqueeze(1), found, pair)
    return places.gather(1, pair), best


def two_layers(a: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The elements of the first two Pareto layers of each row, and which entries are filled."""
    order = c.argsort(dim=1, descending=True, stable=True)
    order = order.gather(1, a.gather(1, order).argsort(dim=1, descending=True, stable=True))
    gain = c.gather(1, order)  # sorted by a, ties by c, so dominating elements come first
    first = _rises(gain)
    second = _rises(gain.masked_fill(first, -torch.inf))
    layers = first | second
    count = layers.sum(dim=1)
    at, there = find_largest(layers.byte(), count, int(count.max()))
    return order.gather(1, at), there


def _rises(values: Tensor) -> Tensor:
    """Where a value is above all those before it."""
    before = values.cummax(dim=1).values.roll(1, dims=1)
    before[:, 0] = -torch.inf
    return values > before
