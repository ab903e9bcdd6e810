"""GreedyFool: add pixels of large gradient and move them all, then restore those not needed.

Dong, Chen, Bao, Qin, Yuan, Zhang, Yu, Chen: GreedyFool: distortion-aware sparse adversarial attack.
NeurIPS 2020.

    score  = mean_c |g| * weight               g the margin's gradient at x + d
    M      = M and the pixel of largest score outside M
    d      = clip(d - (eps / 2) * (g * M) / |g * M|_inf)

until ``x + d`` fools; then ``reduce_pixels`` restores what is not needed. ``weight`` says where a
change hides (``hiding_weights``). Below ``eps = 128/255`` the pixels of M may be chosen again, and
step t chooses t of them, since single ones would take too long. One forward and one backward pass
per step, and at most fifteen forward passes per pixel in the second stage.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick.attacks.card import Attack, Card
from pinprick.parts.box import into_ball, keep_allowed
from pinprick.parts.largest import find_largest, mask_largest
from pinprick.parts.sigma_map import sigma_map
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import pixel_distance, setting
from pinprick.types import Images, Mask

Distortion = Literal["none", "hill", "sigma"]
_GREY = (0.299, 0.587, 0.114)  # how much red, green and blue count for brightness
_HIGH_PASS = ((-1.0, 2.0, -1.0), (2.0, -4.0, 2.0), (-1.0, 2.0, -1.0))  # KB
_PIXELS = Units("pixels")
_SCALES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.6, 2.0, 3.0, 5.0)
_AT_ONCE = 5  # scales per forward pass, to save memory
_BOOST_BELOW = 128 / 255


@dataclass(frozen=True, kw_only=True)
class GreedyFool(Attack):
    """Adds pixels of large gradient, moves them all, then restores as many as possible.

    Attributes:
        eps: The most that a value may change, where pixel values run from 0 to 1.
        steps: Give up on an image after this many steps of the first stage.
        trials: Pixels that the second stage tries to restore at most; 0 to skip it.
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
        revision=3,
        differences=(
            "A formula replaces the distortion map, which in the paper is a network trained on "
            "ImageNet. Images without structure have weight 1 everywhere.",
            "The weight is averaged over 3 x 3 pixels. The authors' code averages along the "
            "flattened rows, across their ends.",
            "The scales of the second stage are tenths of `eps`, then 1.25, 1.6, 2, 3 and 5 "
            "times `eps`, clipped. The authors' are 8-bit multiples of `eps / 10` up to about "
            "1.08 `eps`.",
            "Two changed pixels may become one. The authors' code stops at two.",
            "Targets use the margin of the goal. The paper describes them, and the published "
            "code omits them.",
            "The label is that of the goal.",
            "An image is given up once no pixel can move.",
            "The variant for transfer is not included.",
        ),
    )

    eps: float = pixel_distance(1.0)
    steps: int = setting(1000, least=1)
    trials: int = setting(3000, least=0)
    distortion: Distortion = "none"

    def facts(self) -> Card:
        forwards = self.steps + 1 + len(_SCALES) * self.trials
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
        met = part.goal.met(part.logits(adv[rows]))  # the last step has no logits yet
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
        return chosen | mask_largest(score, count, number)

    def _move(self, grad: Images, mask: Tensor) -> Images:
        """Half of ``eps`` for the value of the steepest gradient, the others in proportion."""
        slope = grad * _PIXELS.spread(mask, grad)
        steepest = slope.abs().amax(dim=(1, 2, 3), keepdim=True)
        return self.eps / 2 * slope / steepest.where(steepest > 0, 1)


def hiding_weights(images: Images, distortion: Distortion) -> Tensor:
    """How well a change hides at each pixel, (batch, pixel); all ones without a map.

    The paper trains a network for this map. Two formulas replace it, both cheap and made from the
    image alone: the HILL cost of steganography (Li, Wang, Huang, Li: A new cost function for
    spatial image steganography. ICIP 2014) and the sigma-map of Croce and Hein.

        busy   = |grey * KB| averaged over 3x3,    cost = 1 / busy averaged over 15x15
        rho    = cost, scaled to [0, 1]            HILL
        rho    = 1 - sigma, scaled to [0, 1]       sigma-map
        weight = 1 - rho, less its 30th percentile, over the 75th percentile of that, in [0, 1],
                 averaged over 3x3
    """
    if distortion == "none":
        return torch.ones_like(images[:, 0]).flatten(1)
    precise = images.to(torch.promote_types(images.dtype, torch.float32))
    hides = 1 - hill_cost(precise) if distortion == "hill" else _scaled(_sigma(precise))
    flat = hides.flatten(1)
    flat = (flat - _percentile(flat, 30)).clamp_min(0)
    high = _percentile(flat, 75)
    flat = torch.where(high > 0, flat / high.where(high > 0, 1), flat.sign()).clamp(0, 1)
    weights = _mean(flat.view_as(hides), 3).flatten(1)
    nowhere = ~(weights > 0).any(dim=1, keepdim=True)  # a flat image hides as well anywhere
    return weights.masked_fill(nowhere, 1).to(images.dtype)


def hill_cost(images: Images) -> Tensor:
    """How much a change would show at each pixel, from 0 to 1, (batch, 1, height, width)."""
    colour = images.new_tensor(_GREY).view(1, 3, 1, 1)
    grey = (
        (images * colour).sum(dim=1, keepdim=True)
        if images.shape[1] == 3
        else images.mean(dim=1, keepdim=True)
    )
    kernel = images.new_tensor(_HIGH_PASS).view(1, 1, 3, 3)
    detail = F.conv2d(F.pad(grey, (1, 1, 1, 1), mode="replicate"), kernel).abs()
    return _scaled(_mean(1 / (_mean(detail, 3) + 1e-10), 15))


def _sigma(images: Images) -> Tensor:
    return sigma_map(images).mean(dim=1, keepdim=True)


def _scaled(values: Tensor) -> Tensor:
    """Each image's values from 0 to 1; 0 where they are all the same."""
    low = values.amin(dim=(1, 2, 3), keepdim=True)
    span = values.amax(dim=(1, 2, 3), keepdim=True) - low
    return (values - low) / span.where(span > 0, 1)


def _mean(values: Tensor, size: int) -> Tensor:
    """The mean over a square around each pixel, within the image."""
    return F.avg_pool2d(values, size, 1, size // 2, count_include_pad=False)


def _percentile(values: Tensor, percent: int) -> Tensor:
    """Of each row, as a column; one of its values."""
    rank = round(percent / 100 * (values.shape[1] - 1))
    return values.sort(dim=1).values[:, rank : rank + 1]


def reduce_pixels(problem: Problem, adv: Images, eps: float, trials: int) -> Images:
    """The second stage: restores pixels, the least changed first, and scales the other changes.

        candidate(a) = clip(x + a * eps * d / |d|_inf),    d: the change without that pixel

    for a = 0.1, 0.2, ..., 1 and five more up to 5. With a above 1 the values of the largest change
    stay at ``eps`` and the others catch up. The smallest ``a`` that fools is kept with its scale,
    and pixels are ordered again. Where none fools, the pixel stays and the next one is tried. An
    image is done once its last pixel was tried, or when one pixel is left. At most fifteen forward
    passes per pixel. ``trials`` bounds the number of pixels that are tried.
    """
    adv = adv.clone()
    rows = torch.arange(len(adv), device=adv.device)  # images with pixels still to be tried
    rank = torch.zeros_like(rows)  # index of the pixel to try, in the order
    for _ in range(trials):
        count = _PIXELS.count(adv[rows], problem.images[rows])
        left = (rank < count) & (count > 1)
        rows, rank = rows[left], rank[left]
        if not len(rows):
            break
        part = problem[rows]
        delta = _without(adv[rows] - part.images, rank, int(count.max()))
        shorter, met = _smallest_scale(part, delta, eps)
        adv[rows[met]] = shorter[met]
        rank = rank + (~met).long()
    return adv


def _without(delta: Images, rank: Tensor, most: int) -> Images:
    """The change without one pixel: that at index ``rank`` in the order from the least changed."""
    size = _PIXELS.total(delta.abs())
    size = size.masked_fill(size == 0, torch.inf)
    least, _ = find_largest(-size, rank + 1, most, above=-torch.inf)
    pixel = least.gather(1, rank.unsqueeze(1))
    kept = torch.ones_like(size, dtype=torch.bool).scatter_(1, pixel, False)
    return delta * _PIXELS.spread(kept, delta)


def _smallest_scale(problem: Problem, delta: Images, eps: float) -> tuple[Images, Mask]:
    """The images under the smallest scale of the change that fools, and where there is one."""
    delta = delta / delta.abs().amax(dim=(1, 2, 3), keepdim=True)
    best, found = problem.images.clone(), torch.zeros_like(delta[:, 0, 0, 0], dtype=torch.bool)
    rows = torch.arange(len(delta), device=delta.device)
    for scales in (eps * delta.new_tensor(_SCALES)).split(_AT_ONCE):
        each = rows.repeat_interleave(len(scales))
        part, scale = problem[each], scales.repeat(len(rows)).view(-1, 1, 1, 1)
        tried = into_ball(part.images + scale * delta[each], part.images, eps)
        met = part.goal.met(part.logits(tried)).view(len(rows), len(scales))
        first = met.long().argmax(dim=1) + torch.arange(len(rows), device=rows.device) * len(scales)
        some = met.any(dim=1)
        best[rows[some]], found[rows[some]] = tried[first[some]], True
        rows = rows[~some]
        if not len(rows):
            break
    return best, found
