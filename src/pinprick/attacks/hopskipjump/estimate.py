"""Which way the boundary bends, from the classes of images around a point of it.

    g = sum over b of (phi_b - mean phi) * u_b        phi_b = 1 where x + delta * u_b fools, else -1

``u_b`` are random directions of length one, less what the box cuts off. Where all of them fool, or
none does, the mean is not taken off. Directions come in blocks of a size that depends on the
images' alone, and are added up one after another, so that a batch gives what its images give.
"""

from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor

from pinprick.problem import Problem
from pinprick.types import Counts, Images, PerImage

_ELEMENTS = 2**21  # of the images in one pass, or as many images as there are in the problem
_DRAWN = 2**16  # elements of an image's directions that are drawn together
_BLOCK = 16  # directions drawn together at most


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

    Args:
        problem: The images.
        adv: Points on the boundary, one for each.
        norm: What is kept small; the directions are normal for l2 and uniform for linf.
        delta: How far away the model is asked, in l2.
        samples: How often, at least once.
        most: A bound on the samples, which saves asking the device for it.
        step: The number of the estimate, for other random numbers each time.
    """
    wide = adv.to(torch.promote_types(adv.dtype, torch.float32))
    far = delta.to(wide.dtype).view(-1, 1, 1, 1, 1)
    told, plain = torch.zeros_like(wide), torch.zeros_like(wide)
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
            told += sign.view(-1, 1, 1, 1) * one
            plain += sign.abs().view(-1, 1, 1, 1) * one
    mean = (balance / samples).to(wide.dtype).view(-1, 1, 1, 1)
    gradient = torch.where(mean.abs() == 1, told, told - mean * plain)
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
