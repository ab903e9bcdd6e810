"""GreedyFool: add pixels of large gradient and move them all, then put back what can be spared.

Dong, Chen, Bao, Qin, Yuan, Zhang, Yu, Chen: GreedyFool: distortion-aware sparse adversarial attack.
NeurIPS 2020.

    score  = mean_c |g| * weight               g the margin's gradient at x + d
    M      = M and the pixel of largest score outside M
    d      = clip(d - (eps / 2) * (g * M) / |g * M|_inf)

until ``x + d`` fools; then ``reducing.py`` puts back what is not needed. ``weight`` says where a
change hides (``distortion.py``). Below ``eps = 128/255`` the pixels of M may be chosen again and
one more of them is chosen each step, as single ones would take too long. One forward and one
backward pass a step, at most ten forward passes for each pixel that is tried in the second stage.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, get_args

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.attacks.greedyfool.distortion import Distortion, hiding_weights
from pinprick.attacks.greedyfool.reducing import reduce_pixels
from pinprick.errors import BadInput
from pinprick.parts.box import into_ball, keep_allowed
from pinprick.parts.choice import check_choice
from pinprick.parts.largest import open_largest
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images, Mask

_PIXELS = Units("pixels")
_BOOST_BELOW = 128 / 255
_SCALES = 10


@dataclass(frozen=True, kw_only=True)
class GreedyFool(Attack):
    """Pixels of large gradient one after another, all moved together, then as few as will do.

    Attributes:
        eps: The most that a value may change, where pixel values run from 0 to 1.
        steps: Give up on an image after this many steps of the first stage.
        trials: The most pixels that the second stage tries to put back; 0 to leave it out.
        distortion: Where changes hide: "none" for anywhere, the "hill" cost, or the "sigma" map.
    """

    card: ClassVar[Card] = Card(
        name="greedyfool",
        title="GreedyFool",
        norm="l0",
        unit="pixels",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:2010.13773",
        revision=2,
        differences=(
            "The paper's distortion map comes from a network trained on ImageNet; a formula "
            "stands in for it. An image without structure has weight 1 everywhere.",
            "The weight is averaged over 3 x 3 pixels; the authors' code averages along the "
            "rows of the flattened image, across their ends.",
            "The scales of the second stage are tenths of `eps`; the authors' are multiples of "
            "`eps / 10` in whole levels of the 8-bit grid, 0 among them.",
            "Targets come with the margin of the goal; the paper describes them, the published "
            "code leaves them out.",
            "The label left is that of the goal.",
            "An image that nothing moves any more is given up.",
            "The variant for transfer, which goes on to a margin, is left out.",
        ),
    )

    eps: float = 1.0
    steps: int = 1000
    trials: int = 3000
    distortion: Distortion = "none"

    def __post_init__(self) -> None:
        if not 0 < self.eps <= 1:
            raise BadInput(f"greedyfool needs eps above 0 and at most 1, got {self.eps:g}")
        if self.steps < 1 or self.trials < 0:
            raise BadInput(
                f"greedyfool needs steps >= 1 and trials >= 0, got {self.steps} and {self.trials}"
            )
        check_choice("greedyfool", "distortion", self.distortion, get_args(Distortion))

    def facts(self) -> Card:
        forwards = self.steps + 1 + _SCALES * self.trials
        return replace(self.card, max_forwards=forwards, max_backwards=self.steps)

    def __call__(self, problem: Problem) -> Images:
        found, met = self._increase(problem)
        if self.trials and met.any():
            found[met] = reduce_pixels(problem[met], found[met], self.eps, self.trials)
        return found

    def _increase(self, problem: Problem) -> tuple[Images, Mask]:
        """The first stage: adversarial images, and where there is one."""
        found, adv = problem.images.clone(), problem.images.clone()
        done = torch.zeros_like(adv[:, 0, 0, 0], dtype=torch.bool)
        weights = hiding_weights(problem.images, self.distortion)
        chosen = torch.zeros_like(weights, dtype=torch.bool)
        rows = torch.arange(len(adv), device=adv.device)  # images still on their way
        for step in range(self.steps):
            part, x = problem[rows], adv[rows]
            logits, grad = part.logits_and_gradient(x, part.goal.margin)
            met = part.goal.met(logits)
            found[rows[met]], done[rows[met]] = x[met], True
            grad = keep_allowed(grad, torch.zeros_like(grad), part.allowed)
            mask = self._with_more(chosen[rows], _PIXELS.total(grad.abs()) * weights[rows], step)
            moved = into_ball(x - self._move(grad, mask), part.images, self.eps)
            going = ~met & ((moved != x).flatten(1).any(dim=1) | (mask != chosen[rows]).any(dim=1))
            adv[rows], chosen[rows] = moved, mask
            rows = rows[going]
            if not len(rows):
                return found, done
        part = problem[rows]
        met = part.goal.met(part.logits(adv[rows]))  # the last step was not looked at yet
        found[rows[met]], done[rows[met]] = adv[rows[met]], True
        return found, done

    def _with_more(self, chosen: Tensor, score: Tensor, step: int) -> Tensor:
        """The pixels chosen so far, and those of the largest score above zero."""
        number = 1
        if self.eps < _BOOST_BELOW:
            number = min(step + 1, score.shape[1])
        else:
            score = score.masked_fill(chosen, 0)
        count = torch.full_like(score[:, 0], number, dtype=torch.long)
        return chosen | open_largest(score, count, number)

    def _move(self, grad: Images, mask: Tensor) -> Images:
        """Half of ``eps`` for the value of the steepest gradient, the others in proportion."""
        slope = grad * _PIXELS.spread(mask, grad)
        steepest = slope.abs().amax(dim=(1, 2, 3), keepdim=True)
        return self.eps / 2 * slope / steepest.where(steepest > 0, 1)
