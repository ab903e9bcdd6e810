"""L-BFGS: the smallest change for which the penalised loss has its minimum where the goal is met.

Szegedy, Zaremba, Sutskever, Bruna, Erhan, Goodfellow, Fergus: Intriguing properties of neural
networks. ICLR 2014.

    minimise  c * |r|_2^2 + L(f(x + r))   subject to  x + r in [0, 1]

by L-BFGS in the box, for the ``c`` on the edge between minima that meet the goal and minima that do
not, found image by image: tenfold steps until both kinds have been seen, then halving on the
scale of logarithms. The smallest image of all that met the goal is returned. A forward and a
backward pass per step, and a forward pass more at the end of each search.

``L`` is the cross-entropy to the target, as in the paper, which has no untargeted form. Without a
target it is ``log(1 + exp(margin))``, the cross-entropy between the label and its strongest rival.
Minus the cross-entropy to the label would not do: it is flat where the network is sure and falls
for ever beyond the boundary, so its minima stay at the clean image or run to the edge of the box.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from pinprick.attacks.card import Attack, Card
from pinprick.goal import Goal
from pinprick.parts.best import Best
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images, Labels, Logits, Mask, PerImage

Points = Float[Tensor, "batch size"]
Ask = Callable[[Points, Labels], tuple[PerImage, Points]]
_PAIRS = 8  # moves that H remembers
_SHARE = 1e-4  # of the predicted fall that is needed
_GRID = 2.0**-22  # coarser where the dtype has fewer digits


@dataclass(frozen=True, kw_only=True)
class LBFGS(Attack):
    """Box-constrained L-BFGS on a penalised loss, with a search for the penalty.

    Attributes:
        penalty: Where the search for ``c`` begins.
        searches: Values of ``c`` that are tried per image.
        steps: Gradients per value of ``c``, at most.
    """

    card: ClassVar[Card] = Card(
        name="lbfgs",
        title="L-BFGS",
        norm="l2",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:1312.6199",
        differences=(
            "The norm is squared, so the objective is smooth at the clean image.",
            "The paper prints the least `c`. Its `c` weighs the norm, so the largest `c` that "
            "fools is meant. Ours searches for that one.",
            "Every image on the way is tested, not only the minima.",
            "Each search starts from the last minimum.",
            "Points lie on a grid of 2^-22. So rounding of the network, which depends on the "
            "batch size, does not lead to another search.",
            "The untargeted form is ours. It uses the cross-entropy between the label and the "
            "best other class.",
        ),
    )

    penalty: float = setting(1.0, above=0)
    searches: int = setting(10, least=1)
    steps: int = setting(30, least=2)

    def facts(self) -> Card:
        return replace(
            self.card,
            max_forwards=self.searches * (self.steps + 1),
            max_backwards=self.searches * self.steps,
        )

    def __call__(self, problem: Problem) -> Images:
        images, best = problem.images, Best(problem.images)
        low, high = (-images).flatten(1), (1 - images).flatten(1)
        if problem.allowed is not None:
            low, high = (edge * problem.allowed.flatten(1) for edge in (low, high))
        penalty = images.new_full((len(images),), self.penalty)

        def ask(delta: Points, rows: Labels) -> tuple[PerImage, Points]:
            """The function to minimise and its gradient, for some of the images."""
            part, adv = problem[rows], _add(images[rows], delta)
            loss = partial(_loss, part.goal)
            logits, grad = part.logits_and_gradient(adv, loss)
            size, weight = delta.square().sum(dim=1), penalty[rows]
            _offer(best, rows, adv, size, part.goal.met(logits))
            value = loss(logits).to(size.dtype) + weight * size
            return value, grad.flatten(1) + 2 * weight.unsqueeze(1) * delta

        works, fails = torch.zeros_like(penalty), torch.full_like(penalty, torch.inf)
        delta = torch.zeros_like(low)
        for _ in range(self.searches):
            delta = minimise_in_box(ask, delta, low, high, scale=0.5 / penalty, tries=self.steps)
            met = problem.goal.met(problem.logits(_add(images, delta)))
            works, fails = torch.where(met, penalty, works), torch.where(met, fails, penalty)
            between = torch.where(works == 0, fails / 10, (works * fails).sqrt())
            penalty = torch.where(fails.isinf(), works * 10, between)
        return best.images


def minimise_in_box(
    ask: Ask,
    start: Points,
    low: Points,
    high: Points,
    *,
    scale: PerImage,
    tries: int,
    tolerance: float = 1e-6,
) -> Points:
    """A point of low value for each row, by L-BFGS inside a box.

    Row ``i`` of every tensor belongs to function ``i``; rows move in lock-step and share nothing. A
    step follows Bertsekas's projected quasi-Newton method. Values at the edge of the box that would
    leave it are held; the others move along

        d = -H g

    with ``H`` from the last moves and changes of the gradient (Nocedal's two loops). The point is
    clipped to the box. The move is accepted if the function falls by a share of what ``g``
    predicted; otherwise a shorter one is tried. Each try evaluates value and gradient once. Rows
    that have settled are not evaluated again.

    Points lie on a grid of 2^-22, far finer than 8-bit values. The last bit of a network's output
    depends on the batch size, and rounding stops it from changing the search.

    Args:
        ask: Value and gradient at some points, given the rows that they belong to.
        start: Where each row begins, inside the box.
        low: The lower edge of the box.
        high: The upper edge.
        scale: A first guess at the inverse of the curvature: the first ``d`` is ``-scale * g``.
        tries: Evaluations per row at most, including one for its start.
        tolerance: A row has settled when a move lowers its value by less than this share.
    """
    rows = torch.arange(len(start), device=start.device)  # not yet settled
    point, pairs = start, _Pairs(scale)
    value, grad = ask(start, rows)
    towards = _direction(pairs, point, grad, low, high)
    length = torch.ones_like(value)
    for _ in range(tries - 1):
        trial = _onto_grid(point + length.unsqueeze(1) * towards, low, high)
        predicted = (grad * (trial - point)).sum(dim=1)
        rows = rows[predicted[rows] < 0]  # else the move is too short for the grid
        if not len(rows):
            break
        asked, asked_grad = ask(trial[rows], rows)
        new_value = torch.full_like(value, torch.inf).index_copy(0, rows, asked)
        new_grad = grad.index_copy(0, rows, asked_grad)
        taken = new_value <= value + _SHARE * predicted
        settled = taken & (value - new_value <= tolerance * value.abs())
        short = (-predicted / (2 * (new_value - value - predicted))).nan_to_num(0.0).clamp(0.1, 0.5)
        length = torch.where(taken, 1, length * short)
        pairs.add(trial - point, new_grad - grad, taken)
        point = torch.where(taken.unsqueeze(1), trial, point)
        grad = torch.where(taken.unsqueeze(1), new_grad, grad)
        value = torch.where(taken, new_value, value)
        fresh = _direction(pairs, point, grad, low, high)
        towards = torch.where(taken.unsqueeze(1), fresh, towards)
        rows = rows[~settled[rows]]
    return point


def _onto_grid(point: Points, low: Points, high: Points) -> Points:
    """The nearest point of the grid in the box; the edges of the box count as grid points."""
    grid = max(_GRID, torch.finfo(point.dtype).eps / 4)
    point = (point / grid).round() * grid
    point = torch.where(point < low + grid, low, point)
    return torch.where(point > high - grid, high, point)


def _direction(pairs: "_Pairs", point: Points, grad: Points, low: Points, high: Points) -> Points:
    """The quasi-Newton step, or steepest descent where the box turns that uphill."""
    free = torch.where(grad > 0, point > low, point < high)
    grad = grad * free
    step, scale = pairs.times(grad, free)
    predicted = (grad * ((point - step).clamp(low, high) - point)).sum(dim=1, keepdim=True)
    return -torch.where(predicted < 0, step, scale.unsqueeze(1) * grad)


class _Pairs:
    """The last moves and gradient changes of each row; together they stand for the matrix ``H``."""

    def __init__(self, scale: PerImage) -> None:
        self._scale = scale
        self._pairs: list[tuple[Points, Points]] = []

    def add(self, move: Points, change: Points, taken: Mask) -> None:
        self._pairs = [*self._pairs, (move * taken.unsqueeze(1), change)][-_PAIRS:]

    def times(self, grad: Points, free: Bool[Tensor, "batch size"]) -> tuple[Points, PerImage]:
        """``H`` of the free values times ``grad``, and the multiple of one that ``H`` began as."""
        seen, scale = [], self._scale
        for move, change in self._pairs:
            move, change = move * free, change * free
            agreement, size = _dot(move, change), _dot(change, change)
            curved = agreement > 1e-10 * (_dot(move, move) * size).sqrt()  # else it says nothing
            scale = torch.where(curved, agreement / size, scale)
            seen.append((move, change, torch.where(curved, 1 / agreement, 0)))
        shares = []
        for move, change, weight in reversed(seen):
            shares.append(weight * _dot(move, grad))
            grad = grad - shares[-1].unsqueeze(1) * change
        grad = scale.unsqueeze(1) * grad
        for move, change, weight in seen:
            share = shares.pop() - weight * _dot(change, grad)
            grad = grad + share.unsqueeze(1) * move
        return grad, scale


def _dot(a: Points, b: Points) -> PerImage:
    return (a * b).sum(dim=1)


def _add(images: Images, delta: Points) -> Images:
    return (images + delta.view_as(images)).clamp(0, 1)


def _offer(best: Best, rows: Labels, adv: Images, size: PerImage, met: Mask) -> None:
    """Offer what was found for some of the images."""
    everywhere = torch.zeros_like(best.cost, dtype=torch.bool).index_copy(0, rows, met)
    cost = best.cost.index_copy(0, rows, size.to(best.cost.dtype))
    best.offer(best.images.index_copy(0, rows, adv), cost, everywhere)


def _loss(goal: Goal, logits: Logits) -> PerImage:
    return F.softplus(goal.margin(logits)) if goal.targets is None else goal.cross_entropy(logits)
