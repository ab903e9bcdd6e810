"""Anneal: from an adversarial image through dense ones to one with fewer units.

The update of sigma-zero (Cinà et al., ICLR 2025), started at an image that meets the goal instead
of at the clean one. Normalised gradients and Adam's step of about ``rate`` per element first weaken
every changed unit and change many others. The threshold rises while the goal is met and falls while
it is not; changes below it are undone. The path goes through dense images and values inside the
box, so it escapes corners where gradients vanish.
One forward and one backward pass per step.
"""

import torch

from pinprick.attacks.pinprick.lockstep import Search
from pinprick.parts.adam import Adam, falling_rate
from pinprick.parts.best import Best
from pinprick.parts.box import on_grid
from pinprick.parts.choose_units import scaled
from pinprick.parts.units import Units, smooth_l0_slope
from pinprick.problem import Problem

_SIGMA = 1e-3  # width of the smooth l0
_THRESHOLD = 0.3  # at the start
_PACE = 0.01  # threshold's change, in units of the rate
_RATE = 0.5  # Adam's learning rate at the start; a tenth of it at the end


def anneal(
    problem: Problem, units: Units, steps: int, *, found: Best, eight_bit: bool = False
) -> Search:
    """Search for images with fewer units around those found; returns the better of both.

    Args:
        problem: The images; one that was not found yet starts clean.
        units: What is counted.
        steps: Number of passes.
        found: The best image of each so far.
        eight_bit: Keep to values that an 8-bit image can hold.
    """
    images = problem.images
    adv, adam = found.images, Adam(images)
    threshold = images.new_full((len(images), 1), _THRESHOLD)
    for step in range(steps):
        delta = adv - images
        answer = yield adv
        found.offer(adv, units.count(adv, images), answer.met)
        far = answer.grad.masked_fill(answer.met.view(-1, 1, 1, 1), 0)
        grad = far + smooth_l0_slope(delta, _SIGMA, units)
        grad = scaled(grad if problem.allowed is None else grad * problem.allowed)
        delta = delta - falling_rate(_RATE, step, steps) * adam.step(grad)
        adv = (images + delta).clamp(0, 1)
        adv = on_grid(adv, images) if eight_bit else adv
        pace = _PACE * falling_rate(_RATE, step + 1, steps)
        threshold = (threshold + torch.where(answer.met, pace, -pace).unsqueeze(1)).clamp(0, 1)
        weak = units.largest((adv - images).abs()) < threshold
        adv = torch.where(units.spread(weak, images), images, adv)
    return found
