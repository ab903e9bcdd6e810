"""Start: open the most promising gates of the clean image.

``v`` is a running mean of the margin's gradient, ``c`` the corner of the box it points at:

    promise_i = |v_i| * |c_i - x_i|,    the k most promising are open
    x' = c where open, else x

The first start of an image begins with signed steps that change every value. They fool where few
gates could not, and their gradients show what the way to the goal is like, not only its beginning.
All gradients so far count the same, until the memory is full. On an image larger than 32 x 32 such
steps lead far away. If they have not fooled it, it begins anew with shorter ones.

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
_ALIKE = 3 * 32 * 32  # elements of an image that the lengths of steps are stated for


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
        self._reach = reach(images)
        self._again = signed + 1 if self._reach < 1 else 0  # passes to begin anew after
        self._late = torch.zeros_like(rows)  # passes before the image began anew

    @property
    def not_alike(self) -> int:
        """The passes that are left of those in which some images may take signed steps."""
        if not self._signed:
            return 0
        return max(0, self._signed + self._again - int(self.taken[:1].sum()))

    def slot(self, problem: Problem, units: Units, passes: int, done: int) -> Slot:
        images, number = problem.images, self._gates.shape[1]
        many = max(_LEAST, _MANY * number)
        steps, _ = self.steps(passes)
        alone = self.not_alike
        ceiling = (_GROWTH * self._count).clamp_max(number)
        most = math.ceil(float(ceiling.max()))

        def learn(answer: Answer, now: Now) -> None:
            found, grad = self.found, answer.grad
            found.offer(self.adv, answer.changed, answer.met)
            step = at(steps, now) - self._late
            weight = 1 - torch.minimum(step / (step + 1), self._memory)
            weight = weight.to(images.dtype).view(-1, 1, 1, 1)
            self._mean = torch.lerp(self._mean, scaled(grad), weight)
            walks = None
            if isinstance(now, int) and now < alone:
                walks = step < self._signed
                walked = self._walk(problem, grad, step)
                if self._again:  # images that none of these steps fooled begin anew
                    anew = (step == self._signed) & (self._late == 0) & found.cost.isinf()
                    self._late = self._late + anew * self._again
                    walked = torch.where(anew.view(-1, 1, 1, 1), images, walked)
                    walks = walks | anew
                if now < alone - self._again:  # all of them walk
                    self.adv = walked
                    return
            share = (step - self._signed) / (self.length - self._late - self._signed)
            share = share.clamp_min(0)
            change = _LAST + (_FIRST - _LAST) * falling(share)
            change = torch.where(found.cost < torch.inf, change, _FIRST)
            growth = torch.where(self._count < many, change, _LAST)
            factor = torch.where(answer.met, 1 - change, 1 + growth)
            count = torch.minimum((self._count * factor + ~answer.met).floor(), ceiling)
            count = torch.minimum(count, found.cost - 1).clamp(1, number)
            self._count = torch.where(step > self._signed, count, self._count)
            bound = int(self._count.max()) if images.is_cpu else most  # a GPU would have to wait
            self._choose(problem, units, bound, 1 - share, done + now)
            if walks is not None:
                self.adv = torch.where(walks.view(-1, 1, 1, 1), walked, self.adv)

        return learn

    def _walk(self, problem: Problem, grad: Images, step: Tensor) -> Images:
        """The signed steps after this pass of each image; shorter where it began anew."""
        stride = STRIDE * (1 - step.double() / (self._signed + 1))
        stride = torch.where(self._late > 0, self._reach * stride, stride).to(grad.dtype)
        adv = signed_step(problem, self.adv, grad, stride.view(-1, 1, 1, 1), eps=1.0)
        return on_grid(adv, problem.images) if self._eight_bit else adv

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


def reach(images: Images) -> float:
    """Length of steps on these images; their l2 length is at most that on 32 x 32 colour pixels."""
    return min(1.0, math.sqrt(_ALIKE / images[0].numel()))


def falling(share: Tensor) -> Tensor:
    """Falls from 1 at 0 to 0 at 1, slowly at both ends."""
    return 1 - share * share * (3 - 2 * share)
