"""Non-monotone accelerated proximal gradient (Li, Lin, NIPS 2015) for one lambda, many images.

    y = x + (t' / t) (z - x) + ((t' - 1) / t) (x - x')          t' and x' those of the step before
    z = prox(y - a grad L(y)),   a by Barzilai and Borwein, halved until
        F(z) <= max(F(y), C) - delta |z - y|^2                  F = L + lambda |.|_0
    x = z  where  F(z) <= C - delta |z - y|^2,  else the better of z and a step from x itself
    t = (sqrt(4 t^2 + 1) + 1) / 2,   q' = eta q + 1,   C = (eta q C + F(x)) / q',   q = q'

An image leaves when it is fooled, or when F has not changed for two steps.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.goal import Goal
from pinprick.parts.box import keep_allowed
from pinprick.parts.largest import mask_largest
from pinprick.problem import Problem
from pinprick.types import Counts, Images, Logits, Mask, PerImage


@dataclass(frozen=True)
class Box(BatchRows):
    """The box of a change, ``low <= d <= high``, with zero inside."""

    low: Images
    high: Images

    def clip(self, delta: Images) -> Images:
        return delta.clamp(self.low, self.high)


def prox(points: Images, rate: PerImage, lam: PerImage, most: Counts, box: Box) -> Images:
    """The proximal step of the count of changed elements in a box, at most ``most`` of them; exact.

        prox(v) = argmin over d in the box of  |d - v|^2 / (2 a) + lambda * |d|_0

    An element stays at zero or moves to ``c``, the nearest point of the box to ``v``. Moving saves
    ``gain = v^2 - (c - v)^2``, so it moves if ``gain > 2 a lambda``. If too many would move, those
    of the largest gains do.
    """
    near = box.clip(points)
    excess = (_gain(points, near) - (2 * rate * lam).view(-1, 1, 1, 1)).flatten(1)
    keep = excess > 0
    crowded = keep.sum(dim=1) > most
    if crowded.any():
        keep[crowded] = mask_largest(excess[crowded], most[crowded], int(most[crowded].max()))
    return torch.where(keep.view_as(near), near, 0)


def waking_lambda(delta: Images, grad: Images, rate: PerImage, box: Box) -> PerImage:
    """The ``lambda`` below which a step against ``grad`` changes an element that is zero so far."""
    points = -rate.view(-1, 1, 1, 1) * grad
    gain = _gain(points, box.clip(points)).masked_fill(delta != 0, 0)
    return gain.flatten(1).amax(dim=1) / (2 * rate)


def _gain(points: Images, near: Images) -> Images:
    return near * (2 * points - near)  # points^2 - (near - points)^2, without cancelling


HALVINGS = 5  # of a step at most
_ETA = 0.9
_DECREASE = 0.1  # delta, over the largest step
_STILL = 1e-3  # a change of F, as a share of its size, that counts as none


@dataclass(frozen=True)
class Look(BatchRows):
    """What was seen at some changes: the loss, its gradient, and whether the goal is met."""

    loss: PerImage
    grad: Images
    met: Mask


@dataclass(frozen=True)
class Penalised(BatchRows):
    """The problem of one lambda: L plus ``lam`` for each changed element, inside the box.

    Attributes:
        problem: The images.
        box: How far each element may change.
        lam: What a changed element costs.
        rate: The largest step, ``a``.
        most: How many elements may change.
    """

    problem: Problem
    box: Box
    lam: PerImage
    rate: PerImage
    most: Counts

    def look(self, delta: Images) -> Look:
        """One forward and one backward pass at ``delta``."""
        goal = self.problem.goal
        adv = adversarial(self.problem, delta)
        logits, grad = self.problem.logits_and_gradient(adv, loss_of(goal))
        grad = keep_allowed(grad, torch.zeros_like(grad), self.problem.allowed).to(delta.dtype)
        return Look(loss_of(goal)(logits).to(delta.dtype), grad, goal.met(logits))

    def judge(self, delta: Images) -> tuple[PerImage, Mask]:
        """F at ``delta`` and whether it fools, from one forward pass."""
        logits = self.problem.logits(adversarial(self.problem, delta))
        goal = self.problem.goal
        return self.total(loss_of(goal)(logits).to(delta.dtype), delta), goal.met(logits)

    def total(self, loss: PerImage, delta: Images) -> PerImage:
        return loss + self.lam * (delta != 0).flatten(1).sum(dim=1)


def adversarial(problem: Problem, delta: Images) -> Images:
    """The images with their changes, in the dtype of the images."""
    return (problem.images + delta).clamp(0, 1).to(problem.images.dtype)


def loss_of(goal: Goal) -> Callable[[Logits], PerImage]:
    """The paper's L: cross-entropy to a target, the hinge of the margin where a label is left."""
    if goal.targets is not None:
        return goal.cross_entropy
    return lambda logits: goal.margin(logits).clamp(min=0)


def descend(penalised: Penalised, delta: Images, first: Look, steps: int) -> tuple[Images, Mask]:
    """Changes of low F reached from ``delta``, where ``first`` was seen, and which of them fool."""
    ended, fooled = delta.clone(), torch.zeros_like(first.met)
    rows = torch.arange(len(delta), device=delta.device)
    x = before = z = y = delta
    seen, rate = first, penalised.rate
    t = torch.ones_like(first.loss)
    earlier, q, still = torch.zeros_like(t), torch.ones_like(t), torch.zeros_like(t)
    value = bound = penalised.total(first.loss, delta)  # F(x), and C
    for step in range(steps):
        if step:
            y, last = _ahead(x, z, before, earlier, t, penalised.box), y
            past, seen = seen, penalised.look(y)
            rate = _barzilai_borwein(y - last, seen.grad - past.grad, penalised.rate)
        level = torch.maximum(penalised.total(seen.loss, y), bound)
        z, height, met, drop = _backtrack(penalised, y, seen.grad, rate, level)
        chosen, reached = z, height
        poor = ~met & ~(height <= bound - drop)
        if step and poor.any():
            part, here = penalised[poor], x[poor]
            v, low, hit, _ = _backtrack(
                part, here, part.look(here).grad, penalised.rate[poor], bound[poor]
            )
            better = hit | (low < reached[poor])
            chosen = chosen.index_put((poor,), _pick(better, v, chosen[poor]))
            reached = reached.index_put((poor,), torch.where(better, low, reached[poor]))
            met = met.index_put((poor,), hit)
        moves = met | (reached <= bound)  # otherwise nothing better was found
        before, x = x, _pick(moves, chosen, x)
        ahead = torch.where(moves, reached, value)
        still = torch.where((ahead - value).abs() <= _STILL * value.abs(), still + 1, 0)
        value, earlier, t = ahead, t, ((4 * t.square() + 1).sqrt() + 1) / 2
        bound = (_ETA * q * bound + value) / (_ETA * q + 1)
        q = _ETA * q + 1

        ended[rows], fooled[rows] = x, met
        go = ~met & (still < 2) & value.isfinite()
        if not go.any() or penalised.problem.all_refused:
            break
        rows, penalised, seen = rows[go], penalised[go], seen[go]
        x, before, z, y = x[go], before[go], z[go], y[go]
        t, earlier, q, still = t[go], earlier[go], q[go], still[go]
        value, bound = value[go], bound[go]
    return ended, fooled


def _ahead(x: Images, z: Images, before: Images, earlier: Tensor, t: Tensor, box: Box) -> Images:
    """Where momentum leads from ``x``; ``earlier`` and ``t`` are its two weights."""
    weight, past = (earlier / t).view(-1, 1, 1, 1), ((earlier - 1) / t).view(-1, 1, 1, 1)
    return box.clip(x + weight * (z - x) + past * (x - before))


def _barzilai_borwein(moved: Images, turned: Images, largest: PerImage) -> PerImage:
    """The step that fits how the gradient turned; the largest where it did not, or turned away."""
    along = (moved * turned).flatten(1).sum(dim=1)
    square = turned.flatten(1).square().sum(dim=1)
    fits = (along > 0) & (square > 0)
    rate = torch.where(fits, along / square.where(fits, 1), largest)
    return torch.minimum(rate, largest).maximum(largest / 2**HALVINGS)


def _backtrack(
    penalised: Penalised, start: Images, grad: Images, rate: PerImage, level: PerImage
) -> tuple[Images, PerImage, Mask, PerImage]:
    """A proximal step from ``start``, halved until F falls below ``level`` or the goal is met.

    Gives the change, F there, whether it fools, and by how much F had to fall.
    """
    end, height = start.clone(), torch.full_like(level, torch.inf)
    met, drop = torch.zeros_like(level, dtype=torch.bool), torch.zeros_like(level)
    rows = torch.arange(len(start), device=start.device)
    for _ in range(HALVINGS):
        points = start[rows] - rate.view(-1, 1, 1, 1) * grad[rows]
        tried = prox(points, rate, penalised.lam, penalised.most, penalised.box)
        far = (tried - start[rows]).flatten(1).square().sum(dim=1)
        height[rows], met[rows] = penalised.judge(tried)
        end[rows], drop[rows] = tried, _DECREASE / penalised.rate * far
        again = ~met[rows] & ~(height[rows] <= level[rows] - drop[rows])
        rows, penalised, rate = rows[again], penalised[again], rate[again] / 2
        if not len(rows):
            break
    return end, height, met, drop


def _pick(choice: Mask, first: Images, second: Images) -> Images:
    return torch.where(choice.view(-1, 1, 1, 1), first, second)
