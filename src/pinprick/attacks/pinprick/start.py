"""Start: open the most promising gates of the clean image.

``v`` is a running mean of the margin's gradient, ``c`` the corner of the box it points at:

    promise_i = |v_i| * |c_i - x_i|,    the k most promising are open
    x' = c where open, else x

First come signed steps that change every value. They fool where few gates could not, and their
gradients show what the way to the goal is like, not only its beginning. All gradients so far count
the same, until the memory is full.

k shrinks while the image fools and grows while it does not, by a fraction that falls from 0.3 to
0.02, and never reaches the best count again. Beyond a tenth of all units (400 of a small image) it
grows by at most 0.02: with so many units at corners, more passes help more than more gates. Open
gates count 1.4 times, so they stay unless another is clearly better. Promises may carry Gumbel
noise that falls to zero, so gates are drawn rather than sorted. One forward and one backward pass
per step.
"""

import math

import torch

from pinprick.attacks.pinprick.lockstep import Search
from pinprick.parts.adam import half_cosine
from pinprick.parts.best import Best
from pinprick.parts.box import on_grid, signed_step
from pinprick.parts.choose_units import corner, draw_largest, favoured_regions, promise, scaled
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import PerImage

STRIDE = 0.2  # the first of the signed steps, where pixel values run from 0 to 1
_LOYALTY = 0.4  # extra weight of a gate that is open already
_FIRST, _LAST = 0.3, 0.02  # fraction by which k changes, at the start and at the end
_MANY, _LEAST = 1 / 10, 400  # k grows slowly beyond this share and this number of gates
_WIDE = 4  # opens this multiple of the gates known to suffice
_LOOK = 5  # passes between two readings of the largest number of open gates


def start(
    problem: Problem,
    units: Units,
    steps: int,
    *,
    known: PerImage,
    use: str,
    dense: int = 0,
    memory: float,
    temperature: float = 0.0,
    favour: float = 0.0,
    eight_bit: bool = False,
) -> Search:
    """Search from the clean images; returns what it found.

    Args:
        problem: The images.
        units: What is counted.
        steps: Number of passes.
        known: Number of units known to suffice per image; infinite if none is known.
        use: What the random numbers are drawn for.
        dense: How many of the passes are signed steps.
        memory: Most weight of the past in the running mean of the gradients.
        temperature: Noise in the draw of the gates.
        favour: How much some regions of the image are favoured.
        eight_bit: Keep to values that an 8-bit image can hold.
    """
    images = problem.images
    found, adv, mean = Best(images), images, torch.zeros_like(images)
    gates = torch.zeros_like(units.total(images), dtype=torch.bool)
    number = gates.shape[1]
    many, most = max(_LEAST, _MANY * number), max(8, number // 20)
    count = (_WIDE * known).clamp(8, most)
    field = favoured_regions(problem, units, use) if favour else None
    before = max(dense - 1, 0)  # passes before the first gates are chosen
    for step in range(steps):
        answer = yield adv
        found.offer(adv, units.count(adv, images), answer.met)
        past = min(step / (step + 1), memory)
        mean = past * mean + (1 - past) * scaled(answer.grad)
        if step < before:
            adv = signed_step(problem, adv, answer.grad, STRIDE * (1 - step / dense), eps=1.0)
            adv = on_grid(adv, images) if eight_bit else adv
            continue
        done = (step - before) / (steps - before)
        if step > before:
            fraction = _LAST + (_FIRST - _LAST) * half_cosine(done, 1)
            change = torch.where(found.cost < torch.inf, fraction, _FIRST)
            growth = torch.where(count < many, change, _LAST)
            count = torch.where(answer.met, count * (1 - change), count * (1 + growth) + 1).floor()
            count = torch.minimum(count, found.cost - 1).clamp(1, number)
            most = math.ceil(most * (1 + _FIRST)) + 1
        if (step - before) % _LOOK == 0:
            most = int(count.max())
        edge = corner(mean, problem)
        scores = promise(mean, edge, images, units) * (1 + _LOYALTY * gates)
        if field is not None:
            scores = scores * (favour * (1 - done) * field).exp()
        warmth = temperature * (1 - done)
        gates = draw_largest(problem, scores, count, most, temperature=warmth, step=step, use=use)
        adv = torch.where(units.spread(gates, images), edge, images)
    return found
