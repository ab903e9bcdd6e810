"""Start: open the most promising gates of the clean image.

``v`` is a running mean of the margin's gradient, ``c`` the corner of the box it points at:

    promise_i = |v_i| * |c_i - x_i|,    the k most promising are open
    x' = c where open, else x

The first start of an image begins with signed steps that change every value. They fool where few
gates could not, and their gradients show what the way to the goal is like, not only its beginning.
All gradients so far count the same, until the memory is full.

k shrinks while the image fools and grows while it does not, by a fraction that falls from 0.3 to
0.02, and never reaches the best count again. Beyond a tenth of all units (400 of a small image) it
grows by at most 0.02: with so many units at corners, more passes help more than more gates. In a
slot it grows at most fourfold. Open gates count 1.4 times, so they stay unless another is clearly
better. Promises may carry Gumbel noise that falls to zero, so gates are drawn rather than sorted.
One forward and one backward pass per step.
"""

import math

import torch
from torch import Tensor

from pinprick.attacks.pinprick.lockstep import Answer, Now, Search, Slot, at
from pinprick.parts.best import Best
from pinprick.parts.box import on_grid, signed_step
from pinprick.parts.choose_units import corner, draw_largest, promise, scaled
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images, Labels, PerImage

STRIDE = 0.2  # the first of the signed steps, where pixel values run from 0 to 1
_LOYALTY = 0.4  # extra weight of a gate that is open already
_FIRST, _LAST = 0.3, 0.02  # fraction by which k changes, at the start and at the end
_MANY, _LEAST = 1 / 10, 400  # k grows slowly beyond this share and this number of gates
_WIDE = 4  # opens this multiple of the gates known to suffice
_GROWTH = 4  # times that k may become larger in a slot, so that a bound on it is known


class Start(Search):
    """Starts from the clean images.

    Args:
        images: The clean images.
        rows, aims, length, trims: As in ``Search``.
        known: Number of units known to suffice per image; infinite if none is known.
        memory: Most weight of the past in the running mean of the gradients, per image.
        temperature: Noise in the draw of the gates, per image; None to sort them.
        signed: How many signed steps come before the first gates; such starts begin together.
        eight_bit: Keep to values that an 8-bit image can hold.
    """

    def __init__(
        self,
        images: Images,
        units: Units,
        rows: Tensor,
        aims: Labels,
        length: Tensor,
        trims: Tensor,
        *,
        known: PerImage,
        memory: PerImage,
        temperature: PerImage | None = None,
        signed: int = 0,
        eight_bit: bool = False,
    ) -> None:
        super().__init__(rows, aims, Best(images), images, length, trims)
        self._mean = torch.zeros_like(images)
        self._gates = torch.zeros_like(units.total(images), dtype=torch.bool)
        number = self._gates.shape[1]
        self._count = (_WIDE * known).clamp(8, max(8, number // 20))
        self._memory, self._temperature = memory, temperature
        self._signed, self._eight_bit = signed, eight_bit

    @property
    def not_alike(self) -> int:
        """The signed steps that are left."""
        return max(0, self._signed - int(self.taken[:1].sum())) if self._signed else 0

    def slot(self, problem: Problem, units: Units, passes: int, done: int) -> Slot:
        images, number = problem.images, self._gates.shape[1]
        many = max(_LEAST, _MANY * number)
        step, _ = self.steps(passes)
        weight = 1 - torch.minimum(step / (step + 1), self._memory.unsqueeze(1))
        weight = weight.to(images.dtype)
        begun = step > self._signed  # with gates; the first of them have the first count
        share = ((step - self._signed) / (self.length - self._signed).unsqueeze(1)).clamp_min(0)
        left = 1 - share
        fraction = _LAST + (_FIRST - _LAST) * falling(share)
        signed_left = self.not_alike
        ceiling = (_GROWTH * self._count).clamp_max(number)
        most = math.ceil(float(ceiling.max()))

        def learn(answer: Answer, now: Now) -> None:
            found, grad = self.found, answer.grad
            found.offer(self.adv, answer.changed, answer.met)
            self._mean = torch.lerp(self._mean, scaled(grad), at(weight, now).view(-1, 1, 1, 1))
            if isinstance(now, int) and now < signed_left:
                stride = STRIDE * (1 - (self._signed - signed_left + now) / (self._signed + 1))
                self.adv = signed_step(problem, self.adv, grad, stride, eps=1.0)
                self.adv = on_grid(self.adv, images) if self._eight_bit else self.adv
                return
            change = torch.where(found.cost < torch.inf, at(fraction, now), _FIRST)
            growth = torch.where(self._count < many, change, _LAST)
            factor = torch.where(answer.met, 1 - change, 1 + growth)
            count = torch.minimum((self._count * factor + ~answer.met).floor(), ceiling)
            count = torch.minimum(count, found.cost - 1).clamp(1, number)
            self._count = torch.where(at(begun, now), count, self._count)
            bound = int(self._count.max()) if images.is_cpu else most  # a GPU would have to wait
            self._choose(problem, units, bound, at(left, now), done + now)

        return learn

    def _choose(self, problem: Problem, units: Units, most: int, left: PerImage, step: Now) -> None:
        """The next gates, and the candidates that they make."""
        images, use = problem.images, "pinprick, start"
        edge = corner(self._mean, problem)
        scores = promise(self._mean, edge, images, units)
        scores = torch.where(self._gates, (1 + _LOYALTY) * scores, scores)
        warmth = 0.0 if self._temperature is None else (left * self._temperature).unsqueeze(1)
        self._gates = draw_largest(
            problem, scores, self._count, most, temperature=warmth, step=step, use=use
        )
        self.adv = torch.where(units.spread(self._gates, images), edge, images)


def falling(share: Tensor) -> Tensor:
    """Falls from 1 at 0 to 0 at 1, slowly at both ends."""
    return 1 - share * share * (3 - 2 * share)
