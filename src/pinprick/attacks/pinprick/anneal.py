"""Anneal: from an adversarial image through dense ones to one with fewer units.

The update of sigma-zero (Cinà et al., ICLR 2025), started at an image that meets the goal instead
of at the clean one. Normalised gradients and Adam's step of about ``rate`` per element first weaken
every changed unit and change many others. The threshold rises while the goal is met and falls while
it is not; changes below it are undone. The path goes through dense images and values inside the
box, so it escapes corners where gradients vanish.
One forward and one backward pass per step.
"""

import torch

from pinprick.parts.adam import Adam, falling_rate
from pinprick.parts.best import Best
from pinprick.parts.box import on_grid
from pinprick.parts.choose_units import scaled
from pinprick.parts.units import Units, smooth_l0_slope
from pinprick.problem import Problem
from pinprick.types import Logits, PerImage

_SIGMA = 1e-3  # width of the smooth l0
_THRESHOLD = 0.3  # at the start
_PACE = 0.01  # threshold's change, in units of the rate


def anneal(
    problem: Problem,
    found: Best,
    units: Units,
    steps: int,
    *,
    schedule: int,
    rate: float = 0.5,
    eight_bit: bool = False,
) -> None:
    """Look for images with fewer units around those found, and keep them in ``found``.

    Args:
        problem: The images; one that was not found yet starts clean.
        found: The best image of each so far.
        units: What is counted.
        steps: Number of steps to take.
        schedule: Number of steps of the schedule.
        rate: Adam's learning rate at the start; a tenth of it at the end.
        eight_bit: Keep to values that an 8-bit image can hold.
    """
    images, goal = problem.images, problem.goal
    adv = found.images
    adam = Adam(adv)
    threshold = adv.new_full((len(images), 1), _THRESHOLD)

    def hinge(logits: Logits) -> PerImage:
        return goal.margin(logits).clamp_min(0)

    for step in range(steps):
        delta = adv - images
        logits, grad = problem.logits_and_gradient(adv, hinge)
        met = goal.met(logits)
        found.offer(adv, units.count(adv, images), met)
        if problem.all_refused:
            break
        grad = grad + smooth_l0_slope(delta, _SIGMA, units)
        grad = scaled(grad if problem.allowed is None else grad * problem.allowed)
        delta = delta - falling_rate(rate, step, schedule) * adam.step(grad)
        adv = (images + delta).clamp(0, 1)
        adv = on_grid(adv, images) if eight_bit else adv
        pace = _PACE * falling_rate(rate, step + 1, schedule)
        threshold = (threshold + torch.where(met, pace, -pace).unsqueeze(1)).clamp(0, 1)
        weak = units.largest((adv - images).abs()) < threshold
        adv = torch.where(units.spread(weak, images), images, adv)
