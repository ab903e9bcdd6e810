"""HopSkipJump: along the boundary towards the clean image, its slope estimated from classes alone.

Chen, Jordan, Wainwright: HopSkipJumpAttack: a query-efficient decision-based attack. IEEE S&P 2020.

``x_1`` is the problem's start where that fools, otherwise noise, brought back to the boundary.
Then, with d the number of elements,

    g       = sum over b of (phi_b - mean phi) * u_b          from B_t points x_t + delta * u_b
    x'      = x_t + size * g / |g|                            sign(g) for linf
    x_{t+1} = the boundary on the way from x' to x

``phi`` is 1 where the model is fooled and -1 elsewhere, ``u`` are random directions, B_t is
B_1 * sqrt(t), delta is 0.1 at first and then |x' - x| / d. The step begins at |x_t - x| / sqrt(t)
and is halved until it fools. The boundary is found by bisection to d^(-3/2) of the way (d^-2 for
linf). Only forward passes, of which only the class is used.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.parts.best import Best
from pinprick.parts.starts import find_starts, salt_and_pepper, uniform_noise
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Counts, Images, Labels, Mask, PerImage

Norm = Literal["l2", "linf"]
_FIRST_DELTA = 0.1
_ELEMENTS = 2**21  # of the images in one pass, or as many images as there are in the problem
_DRAWN = 2**16  # elements of an image's directions that are drawn together
_BLOCK = 16  # directions drawn together at most


@dataclass(frozen=True, kw_only=True)
class HopSkipJump(Attack):
    """Steps along the boundary, in a direction estimated from many queries.

    Attributes:
        norm: What is kept small, "l2" or "linf".
        steps: Number of steps at most.
        queries: Queries per image at most, in all.
        samples: Queries of the first estimate, B_1.
        most_samples: Queries of one estimate at most.
        gamma: Tolerance of the bisection, in units of the paper's.
        tries: Noisy images that are tried at most, to find one that fools.
    """

    card: ClassVar[Card] = Card(
        name="hopskipjump",
        title="HopSkipJump",
        norm="l2",
        kind="minimal",
        access="labels",
        targeted=True,
        masked=True,
        random=True,
        starts=True,
        paper="arXiv:1904.02144",
        differences=(
            "The nearest image seen is returned, not the last.",
            "Bisections, halvings and delta stop at the precision of the images. In float32 "
            "the authors' tolerance for l-infinity cannot be met.",
            "Noise goes to the boundary directly. The authors blend it first, which is the "
            "same line in l2.",
            "Every second start is salt and pepper, because some models give all uniform noise "
            "one class.",
            "The remaining queries at the end go to a last, shorter estimate.",
            "The mask of allowed pixels is ours.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"quick": {"queries": 1000}}

    norm: Norm = "l2"
    steps: int = setting(40, least=1)
    queries: int = setting(25_000, least=1)
    samples: int = setting(100, least=1)
    most_samples: int = setting(10_000, least=1)
    gamma: float = setting(1.0, above=0)
    tries: int = setting(100, least=1)

    def facts(self) -> Card:
        return replace(self.card, norm=self.norm, max_forwards=self.queries, max_backwards=0)

    def __call__(self, problem: Problem) -> Images:
        starts = find_starts(problem, self._noise, tries=self.tries, queries=self.queries)
        best, rows = Best(problem.images), starts.met.nonzero().flatten()
        part, left, adv = problem[rows], self.queries - starts.asked[rows], starts.images[rows]
        bits = round(-math.log2(torch.finfo(adv.dtype).eps))  # no search is finer
        halvings = self._halvings(adv, bits)
        reach = self._offer(best, rows, part, adv)
        adv = to_boundary(part, adv, self.norm, halvings, left, left > 0)
        for step in range(1, self.steps + 1):
            size = self._offer(best, rows, part, adv)
            stay = (left > halvings + 1) & ~part.refused
            if not stay.all():
                rows, part, left = rows[stay], part[stay], left[stay]
                adv, reach, size = adv[stay], reach[stay], size[stay]
            if not len(rows):
                break
            most = min(int(self.samples * math.sqrt(step)), self.most_samples)
            samples = (left - halvings - 1).clamp_max(most)
            direction = estimate_gradient(
                part,
                adv,
                norm=self.norm,
                delta=self._delta(adv, reach, step),
                samples=samples,
                most=most,
                step=step,
            )
            left = left - samples
            moved, fools = leap(part, adv, direction, size / math.sqrt(step), bits, left, halvings)
            far = distance(moved, part.images, self.norm)
            reach = torch.where(fools, far, reach)
            adv = to_boundary(part, moved, self.norm, halvings, left, fools)
        self._offer(best, rows, part, adv)
        return best.images

    def _noise(self, problem: Problem, number: int) -> Images:
        if number % 2 == 0:
            return uniform_noise(problem, step=number, use="hopskipjump, noise")
        share = (number + 1) / self.tries
        return salt_and_pepper(problem, share, step=number, use="hopskipjump, noise")

    def _halvings(self, images: Images, bits: int) -> int:
        """How often the way to the boundary is halved."""
        power = 1.5 if self.norm == "l2" else 2.0
        wanted = power * math.log2(images[0].numel() if len(images) else 1) - math.log2(self.gamma)
        return max(1, min(math.ceil(wanted), bits))

    def _delta(self, adv: Images, reach: PerImage, step: int) -> PerImage:
        if step == 1:
            return torch.full_like(reach, _FIRST_DELTA)
        elements = adv[0].numel()
        least = 2 * torch.finfo(adv.dtype).eps * math.sqrt(elements)
        return (self.gamma * reach / elements).clamp_min(least)

    def _offer(self, best: Best, rows: Labels, problem: Problem, adv: Images) -> PerImage:
        """Save the images that are nearer than before; return their distances."""
        cost = distance(adv, problem.images, self.norm)
        best.offer(adv, cost, torch.ones_like(rows, dtype=torch.bool), rows)
        return cost


def distance(adv: Images, images: Images, norm: Norm) -> PerImage:
    """How far ``adv`` is from the clean images, in double precision."""
    change = (adv - images).double().flatten(1)
    return change.square().sum(dim=1).sqrt() if norm == "l2" else change.abs().amax(dim=1)


def to_boundary(
    problem: Problem, adv: Images, norm: Norm, halvings: int, left: Counts, go: Mask
) -> Images:
    """The image nearest to the clean one that fools on the way there, by bisection, where ``go``.

    The way is a straight line in l2. In linf every change above a bound is set to the bound, and
    the bound falls. Images move in lock-step, one query per image at a time. ``left`` is the number
    of queries that each image has left, and falls with every query.
    """
    near, images = adv.clone(), problem.images
    reach = distance(adv, images, norm)
    low, high = torch.zeros_like(reach), torch.ones_like(reach)
    rows = (go & (left > 0)).nonzero().flatten()
    for _ in range(halvings):
        if not len(rows):
            break
        part, middle = problem[rows], (low[rows] + high[rows]) / 2
        tried = _on_the_way(adv[rows], part.images, norm, middle, reach[rows])
        met = part.goal.met(part.logits(tried))
        near[rows[met]] = tried[met]
        low[rows] = torch.where(met, low[rows], middle)
        high[rows] = torch.where(met, middle, high[rows])
        left[rows] -= 1
        rows = rows[(left[rows] > 0) & ~part.refused]
    return near


def leap(
    problem: Problem,
    adv: Images,
    direction: Images,
    size: PerImage,
    halvings: int,
    left: Counts,
    reserve: int,
) -> tuple[Images, Mask]:
    """The first of ever smaller steps along ``direction`` that fools, and where there is one.

    ``left`` falls with every query, as in ``to_boundary``, but not below ``reserve``.
    """
    moved, fools = adv.clone(), torch.zeros_like(left, dtype=torch.bool)
    rows, size = (left > reserve).nonzero().flatten(), size.to(adv.dtype).view(-1, 1, 1, 1)
    for halving in range(halvings):
        if not len(rows):
            break
        part = problem[rows]
        tried = (adv[rows] + size[rows] / 2**halving * direction[rows]).clamp(0, 1)
        met = part.goal.met(part.logits(tried))
        moved[rows[met]], fools[rows] = tried[met], met
        left[rows] -= 1
        rows = rows[~met & (left[rows] > reserve) & ~part.refused]
    return moved, fools


def _on_the_way(
    adv: Images, images: Images, norm: Norm, share: PerImage, reach: PerImage
) -> Images:
    """The images at a share of the way from the clean images to ``adv``."""
    if norm == "linf":
        bound = (share * reach).to(adv.dtype).view(-1, 1, 1, 1)
        return adv.clamp(images - bound, images + bound).clamp(0, 1)
    return (images + share.to(adv.dtype).view(-1, 1, 1, 1) * (adv - images)).clamp(0, 1)


def estimate_gradient(
    problem: Problem,
    adv: Images,
    *,
    norm: Literal["l2", "linf"],
    delta: PerImage,
    samples: Counts,
    most: int,
    step: int,
) -> Images:
    """The direction in which ``adv`` goes on to fool: of length one in l2, signs in linf.

        g = sum over b of (phi_b - mean phi) * u_b    phi_b: 1 where x + delta * u_b fools, else -1

    ``u_b`` are random directions of length one, clipped by the box. If all of them fool, or none,
    the mean is not subtracted. Directions come in blocks whose size depends on the shape of the
    images alone and are summed in order, so that a batch gives what its images give.

    Args:
        problem: The images.
        adv: Points on the boundary, one per image.
        norm: What is kept small; the directions are normal for l2 and uniform for linf.
        delta: Distance of the queried points from ``adv``, in l2.
        samples: Queries per image, at least one.
        most: A bound on the samples, which avoids waiting for the device.
        step: Number of the estimate; each has its own random numbers.
    """
    wide = adv.to(torch.promote_types(adv.dtype, torch.float32))
    far = delta.to(wide.dtype).view(-1, 1, 1, 1, 1)
    signed, plain = torch.zeros_like(wide), torch.zeros_like(wide)
    balance = torch.zeros_like(samples)
    for numbers, directions in _directions(problem, norm, wide, most, step):
        tried = (wide.unsqueeze(1) + far * directions).clamp(0, 1).to(adv.dtype)
        directions = (tried.to(wide.dtype) - wide.unsqueeze(1)) / far
        asked = numbers < samples.unsqueeze(1)
        rows, which = asked.nonzero(as_tuple=True)
        part = problem[rows]
        met = part.goal.met(part.logits(tried[rows, which]))
        signs = torch.zeros_like(asked, dtype=torch.long)
        signs[rows, which] = 2 * met.long() - 1
        balance = balance + signs.sum(dim=1)
        for one, sign in zip(directions.unbind(dim=1), signs.unbind(dim=1), strict=True):
            signed += sign.view(-1, 1, 1, 1) * one
            plain += sign.abs().view(-1, 1, 1, 1) * one
    mean = (balance / samples).to(wide.dtype).view(-1, 1, 1, 1)
    gradient = torch.where(mean.abs() == 1, signed, signed - mean * plain)
    if norm == "linf":
        return gradient.sign().to(adv.dtype)
    return (gradient / _length(gradient)).to(adv.dtype)


def _directions(
    problem: Problem, norm: Literal["l2", "linf"], like: Images, most: int, step: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Numbers of directions, and the directions, (batch, some, channel, height, width)."""
    shape, use = like.shape[1:], f"hopskipjump, step {step}"
    block = max(1, min(_BLOCK, _DRAWN // shape.numel()))
    together = max(1, _ELEMENTS // max(1, like.numel()) // block)  # blocks
    blocks = range(-(-most // block))
    for start in range(0, len(blocks), together):
        drawn = []
        for number in blocks[start : start + together]:
            if norm == "l2":
                draw = problem.rng.normal(block, *shape, step=number, use=use)
            else:
                draw = 2 * problem.rng.uniform(block, *shape, step=number, use=use) - 1
            drawn.append(draw.to(like.dtype))
        directions = torch.cat(drawn, dim=1)[:, : most - start * block]
        if problem.allowed is not None:
            directions = directions * problem.allowed.unsqueeze(1)
        count = directions.shape[1]
        length = _length(directions.flatten(0, 1)).unflatten(0, (-1, count))
        numbers = start * block + torch.arange(count, device=like.device)
        yield numbers, directions / length


def _length(vectors: Tensor) -> Tensor:
    """The l2 norm of each, above zero, as (batch, 1, 1, 1)."""
    squares = vectors.flatten(1).double().square().sum(dim=1)
    length = squares.sqrt().to(vectors.dtype).clamp_min(torch.finfo(vectors.dtype).tiny)
    return length.view(-1, 1, 1, 1)
