"""Individuals of OnePixel: drawn, bred, and painted into images.

An individual is k rows of genes in [0, 1]: how far down, how far across, and a colour.
"""

import torch
from torch import Tensor

from pinprick.parts.box import keep_allowed
from pinprick.problem import Problem
from pinprick.types import Counts, Images, Labels

_MIDDLE, _SPREAD = 128 / 255, 127 / 255  # of the colours at the start


def draw_genes(problem: Problem, population: int, k: int, use: str) -> Tensor:
    """A population for each image, (batch, individual, pixel, gene): anywhere, of any colour."""
    channels = problem.images.shape[1]  # pixels come first in a draw, lest it depend on k
    place = problem.rng.uniform(k, population, 2, step=0, use=f"{use}, places")
    colour = problem.rng.normal(k, population, channels, step=0, use=f"{use}, colours")
    colour = (_MIDDLE + _SPREAD * colour).clamp(0, 1)
    return torch.cat((place, colour), dim=3).transpose(1, 2).contiguous()


def plant(problem: Problem, genes: Tensor, frame: Tensor) -> Tensor:
    """The population with the pixels of the start as its first individual, where there is one.

    Those that changed most come first; where there are fewer than k, the first is repeated.
    """
    start, images = problem.begin, problem.images
    size = (start - images).abs().amax(dim=1).flatten(1)
    rank = torch.arange(genes.shape[2], device=size.device).clamp(max=size.shape[1] - 1)
    order = size.argsort(dim=1, descending=True, stable=True)[:, rank]
    useful = size.gather(1, order) > 0
    pixel = torch.where(useful, order, order[:, :1])
    width = images.shape[3]
    place = torch.stack((pixel // width, pixel % width), dim=2)
    centre = (place - frame[:, None, :2] + 0.5) / frame[:, None, 2:]
    where = pixel.unsqueeze(1).expand(-1, images.shape[1], -1)
    colour = start.flatten(2).gather(2, where).transpose(1, 2)
    planted = torch.cat((centre, colour.to(centre.dtype)), dim=2)
    first = torch.where(useful[:, :1, None], planted, genes[:, 0])
    return torch.cat((first.unsqueeze(1), genes[:, 1:]), dim=1)


def mutate(
    problem: Problem, genes: Tensor, best: Labels | None, factor: float, step: int, use: str
) -> Tensor:
    """A child for each individual, from three distinct ones, the first of them perhaps the best."""
    first, second, third = draw_three(problem, genes.shape[1], step, use)
    if best is not None:
        first = best.unsqueeze(1).expand_as(first)
    rows = torch.arange(len(genes), device=genes.device).unsqueeze(1)
    child = genes[rows, first] + factor * (genes[rows, second] - genes[rows, third])
    shape = genes.shape[2], genes.shape[1], genes.shape[3]
    fresh = problem.rng.uniform(*shape, step=step, use=f"{use}, fresh").transpose(1, 2)
    return torch.where((child < 0) | (child > 1), fresh, child)


def draw_three(
    problem: Problem, population: int, step: int, use: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Three distinct individuals for each child: each is drawn among those that are left."""
    first, second, third = (
        problem.rng.integers(population - taken, population, step=step, use=f"{use}, {taken}")
        for taken in range(3)
    )
    second = second + (second >= first)
    low, high = torch.minimum(first, second), torch.maximum(first, second)
    third = third + (third >= low)
    return first, second, third + (third >= high)


def frame_of(problem: Problem) -> Tensor:
    """Top, left, height and width of the smallest rectangle around what may change."""
    images = problem.images
    height, width = images.shape[2], images.shape[3]
    if problem.allowed is None:
        whole = torch.tensor([0, 0, height, width], device=images.device)
        return whole.expand(len(images), 4)
    free = problem.allowed.any(dim=1)
    sides = []
    for along in (free.any(dim=2).int(), free.any(dim=1).int()):
        begin = along.argmax(dim=1)
        sides.append((begin, along.shape[1] - along.flip(1).argmax(dim=1) - begin))
    (top, tall), (left, wide) = sides
    return torch.stack((top, left, tall, wide), dim=1)


def paint(problem: Problem, genes: Tensor, k: Counts, frame: Tensor) -> Images:
    """The images with the first ``k`` pixels of an individual each, (image, pixel, gene)."""
    images = problem.images
    begin, sides = frame[:, None, :2], frame[:, None, 2:]
    place = begin + torch.minimum((genes[:, :, :2] * sides).long(), sides - 1)
    pixel = place[:, :, 0] * images.shape[3] + place[:, :, 1]
    rank = torch.arange(genes.shape[1], device=k.device).expand_as(pixel)
    pixel = torch.where(rank < k.unsqueeze(1), pixel, pixel[:, :1])  # the rest repeat the first
    ranks = rank.new_full((len(pixel), images[0, 0].numel()), genes.shape[1])
    first = ranks.scatter_reduce(1, pixel, rank, "amin").gather(1, pixel)
    colour = genes[:, :, 2:].gather(1, first.unsqueeze(2).expand(-1, -1, images.shape[1]))
    where = pixel.unsqueeze(1).expand(-1, images.shape[1], -1)
    values = colour.transpose(1, 2).to(images.dtype)
    painted = images.flatten(2).scatter(2, where, values).view_as(images)
    return keep_allowed(painted, images, problem.allowed)
