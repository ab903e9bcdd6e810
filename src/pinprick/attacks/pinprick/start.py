"""A start of Pinprick: from the clean image, open the most promising gates.

``v`` is a running mean of the margin's gradient, ``c`` the corner of the box it points at:

    promise_i = |v_i| * |c_i - x_i|,    the k most promising are open,    x' = c where open, else x

k shrinks while the image fools and grows while it does not, by a fraction that falls from 0.3 to
0.02, and never reaches the best count again. Beyond a tenth of all units (400 of a small image) it
grows by no more than 0.02: with so many at the corners of the box it takes more passes, not more
gates, as a rule. Gates that are open count 1.4 times (they stay unless something is clearly
better), and promises carry Gumbel noise that dies down, so the gates are drawn rather than sorted.
One forward and one backward pass a step.
"""

import math

import torch

from pinprick.attacks.pinprick.plan import Stage
from pinprick.parts.best import Best
from pinprick.parts.gates import corner, draw_largest, favoured_regions, promise, scaled
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images, Labels, Logits, PerImage

_LOYALTY = 0.4  # how much more a gate counts that is open already
_FIRST, _LAST = 0.3, 0.02  # fraction by which k changes, at the start and at the end
_MANY, _LEAST = 1 / 10, 400  # k grows slowly beyond so large a share of all gates, and so many
_WIDE = 4  # a later start opens so many times the gates that are known to do
_LOOK = 5  # passes between two looks at how many gates are open at the most


def start(
    problem: Problem,
    units: Units,
    stage: Stage,
    *,
    known: PerImage,
    aims: Labels | None,
    mean: Images,
    steps: int,
    use: str,
) -> tuple[Best, Images]:
    """The shortest adversarial image of each that a start comes across, and the mean at its end.

    Args:
        problem: The images.
        units: What is counted.
        stage: Its length, memory and temperature.
        known: How many units are known to do for each image; infinite if none are.
        aims: The class to aim at; None for whichever is ahead.
        mean: The mean gradient that a stage which resumes goes on with.
        steps: How many of the stage's passes to take.
        use: What the random numbers are drawn for.
    """
    images, goal = problem.images, problem.goal
    found, adv = Best(images), images
    gates = torch.zeros_like(units.total(images), dtype=torch.bool)
    number = gates.shape[1]
    many = max(_LEAST, _MANY * number)
    most = max(8, number // 20)  # a bound on every count, known without asking the device
    count = (_WIDE * known).clamp(8, most)

    def lead(logits: Logits) -> PerImage:
        """The label's lead over the class aimed at."""
        assert aims is not None
        pair = logits.gather(1, torch.stack([goal.labels, aims], dim=1))
        return pair[:, 0] - pair[:, 1]

    loss = goal.margin if aims is None else lead
    field = favoured_regions(problem, units, use) if stage.favour else None
    for step in range(steps):
        logits, grad = problem.logits_and_gradient(adv, loss)
        met = goal.met(logits)
        found.offer(adv, units.count(adv, images), met)
        if problem.all_refused:
            break
        past = stage.memory if step or stage.resume else 0.0
        mean = past * mean + (1 - past) * scaled(grad)
        if step:
            change = torch.where(found.cost < torch.inf, _fraction(step, stage.steps), _FIRST)
            growth = torch.where(count < many, change, _LAST)
            count = torch.where(met, count * (1 - change), count * (1 + growth) + 1).floor()
            count = torch.minimum(count, found.cost - 1).clamp(1, number)
            most = math.ceil(most * (1 + _FIRST)) + 1
        if step % _LOOK == 0:
            most = int(count.max())
        edge = corner(mean, problem)
        scores = promise(mean, edge, images, units) * (1 + _LOYALTY * gates)
        left = 1 - step / stage.steps
        if field is not None:
            scores = scores * (stage.favour * left * field).exp()
        warmth = stage.temperature * left
        gates = draw_largest(problem, scores, count, most, temperature=warmth, step=step, use=use)
        adv = torch.where(units.spread(gates, images), edge, images)
    return found, mean


def _fraction(step: int, steps: int) -> float:
    """By how much k changes: a half cosine from the first to the last value."""
    return _LAST + (_FIRST - _LAST) * (1 + math.cos(math.pi * step / steps)) / 2
