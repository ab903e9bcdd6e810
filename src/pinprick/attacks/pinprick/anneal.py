"""Anneal: from an adversarial image through dense ones to one with fewer units.

The update of sigma-zero (Cinà et al., ICLR 2025), started at an image that meets the goal instead
of at the clean one. Normalised gradients and Adam's step of about ``rate`` per element first weaken
every changed unit and change many others. The threshold rises while the goal is met and falls while
it is not; changes below it are undone. The path goes through dense images and values inside the
box, so it escapes corners where gradients vanish. On an image larger than 32 x 32 the steps are
shorter. One forward and one backward pass per step.
"""

import torch
from torch import Tensor

from pinprick.attacks.pinprick.lockstep import Answer, Now, Search, Slot, at
from pinprick.attacks.pinprick.start import falling, reach
from pinprick.parts.adam import Adam
from pinprick.parts.best import Best
from pinprick.parts.box import on_grid
from pinprick.parts.choose_units import scaled
from pinprick.parts.units import Units, smooth_l0_slope
from pinprick.problem import Problem
from pinprick.types import Labels, PerImage

_SIGMA = 1e-3  # width of the smooth l0
_THRESHOLD = 0.3  # at the start
_PACE = 0.01  # threshold's change, in units of the rate


class Anneal(Search):
    """Searches around adversarial images for fewer units; an image without one starts clean.

    Args:
        rows, aims, found, length, trims: As in ``Search``.
        rate: Adam's learning rate at the start, per image, on images of up to 32 x 32; a tenth of
            it at the end.
        eight_bit: Keep to values that an 8-bit image can hold.
    """

    def __init__(
        self,
        rows: Tensor,
        aims: Labels,
        found: Best,
        length: Tensor,
        trims: Tensor,
        *,
        rate: PerImage,
        eight_bit: bool = False,
    ) -> None:
        super().__init__(rows, aims, found, found.images, length, trims)
        self._rate = rate * reach(found.images)
        self._adam = Adam(found.images)
        self._threshold = torch.full_like(found.cost, _THRESHOLD, dtype=found.images.dtype)
        self._eight_bit = eight_bit

    def slot(self, problem: Problem, units: Units, passes: int, done: int) -> Slot:
        images = problem.images
        _, share = self.steps(passes + 1)
        rate = (self._rate.unsqueeze(1) * (0.1 + 0.9 * falling(share))).to(images.dtype)

        def learn(answer: Answer, now: Now) -> None:
            self.found.offer(self.adv, answer.changed, answer.met)
            delta = self.adv - images
            far = answer.grad.masked_fill(answer.met.view(-1, 1, 1, 1), 0)
            grad = far + smooth_l0_slope(delta, _SIGMA, units)
            grad = scaled(grad if problem.allowed is None else grad * problem.allowed)
            step = at(rate, now).view(-1, 1, 1, 1) * self._adam.step(grad)
            adv = (images + (delta - step)).clamp(0, 1)
            adv = on_grid(adv, images) if self._eight_bit else adv
            pace = _PACE * at(rate, now + 1)
            self._threshold = (self._threshold + torch.where(answer.met, pace, -pace)).clamp(0, 1)
            weak = units.largest((adv - images).abs()) < self._threshold.unsqueeze(1)
            self.adv = torch.where(units.spread(weak, images), images, adv)

        return learn
