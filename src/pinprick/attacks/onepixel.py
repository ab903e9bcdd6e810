"""OnePixel: differential evolution of the positions and colours of a few pixels.

Su, Vargas, Sakurai: One pixel attack for fooling deep neural networks. IEEE Transactions on
Evolutionary Computation, 2019.

    X_0      N individuals: k pixels each, anywhere, their colours normal around the middle
    child_i  = X[r1] + F * (X[r2] - X[r3])            r1, r2, r3 distinct, no crossover
    X[i]     = child_i if its fitness is better, index by index

An individual overwrites its k pixels. Its fitness is the probability of the label, which is to
fall, or of the target, which is to rise. One forward pass per individual, scores alone: at most
N * (generations + 1). An image leaves with the first individual that fools.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.parts.box import keep_allowed
from pinprick.parts.score_loss import blocks, losses_of_candidates
from pinprick.parts.smallest_k import K, run_at_k
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Counts, Images, Labels, Mask

_BLOCK = 64  # individuals per image that are queried before it may leave
_MIDDLE, _SPREAD = 128 / 255, 127 / 255  # of the colours at the start


@dataclass(frozen=True, kw_only=True)
class OnePixel(Attack):
    """A population of few-pixel changes for each image, bred by differences.

    Attributes:
        k: Number of pixels that may change, or "smallest" to seek the fewest for each image.
        population: Number of individuals, N.
        generations: Number of generations after the first.
        factor: Weight of the difference, F.
        strategy: "rand1" breeds from a random individual, as in the paper, "best1" from the best.
        rounds: Values of k that are tried per image at most, if k is "smallest".
    """

    card: ClassVar[Card] = Card(
        name="onepixel",
        title="OnePixel",
        norm="l0",
        unit="pixels",
        kind="budget",
        access="scores",
        targeted=True,
        masked=True,
        starts=True,
        random=True,
        paper="arXiv:1710.08864",
        differences=(
            "An image leaves once it is fooled, after the block of individuals at the latest. The "
            "paper continues until the target has a probability of 90 %, or the label less than 5 "
            "%.",
            "A number that leaves its range is drawn again uniformly, as in later "
            "implementations. The paper does not say what it does.",
            "If two pixels of an individual have the same position, the first counts.",
            "If no individual fools, the best one is returned.",
            "With a mask, positions are drawn in the smallest rectangle around the allowed pixels.",
            '`strategy="best1"` is from later implementations, and `k="smallest"` is ours.',
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"population": 40, "generations": 24, "strategy": "best1"},
    }

    k: K = setting(1, least=1)
    population: int = setting(400, least=3)
    generations: int = setting(100, least=0)
    factor: float = setting(0.5, above=0, most=2)
    strategy: Literal["rand1", "best1"] = "rand1"
    rounds: int = setting(10, least=1)

    def facts(self) -> Card:
        asked = self.population * (self.generations + 1)
        return self.card.at_k(self.k, self.rounds, forwards=asked)

    def __call__(self, problem: Problem) -> Images:
        return run_at_k(problem, self._evolve, Units("pixels"), self.k, self.rounds)

    def _evolve(self, problem: Problem, k: Counts, near: Images, trial: int) -> tuple[Images, Mask]:
        """The best try at one k for each image, and where it fooled; ``near`` is not used."""
        images, met = problem.images.clone(), torch.zeros_like(k, dtype=torch.bool)
        use, frame, part = f"onepixel, trial {trial}", frame_of(problem), problem
        rows = torch.arange(len(problem), device=k.device)  # images not fooled yet
        k = k.clamp(max=images[:1, 0].numel() or 1)  # no more genes than there are pixels
        genes = draw_genes(problem, self.population, int(k.max()) if len(k) else 1, use)
        genes = genes if problem.start is None else plant(problem, genes, frame)
        fitness = torch.full(genes.shape[:2], torch.inf, device=k.device)
        for generation in range(self.generations + 1):
            children = genes.clone()
            if generation:
                best = fitness.argmin(dim=1) if self.strategy == "best1" else None
                children = mutate(part, genes, best, self.factor, generation, use)
            for start in range(0, self.population, _BLOCK):
                block = slice(start, start + _BLOCK)
                lower, fools = _judge(part, children[:, block], k, frame)
                better = lower < fitness[:, block]
                fitness[:, block] = torch.where(better, lower, fitness[:, block])
                better = better[:, :, None, None]
                genes[:, block] = torch.where(better, children[:, block], genes[:, block])
                done = fools.any(dim=1)
                gone = done | part.refused
                if gone.any():
                    first = start + fools.int().argmax(dim=1)
                    chosen = torch.where(done, first, fitness.argmin(dim=1))
                    least = fitness.amin(dim=1).masked_fill(done, 0)
                    pool = torch.where(done[:, None, None, None], children, genes)
                    tries = _pick(part, pool, chosen, least, k, frame)
                    images[rows[gone]], met[rows[done]] = tries[gone], True
                    stay = (~gone).nonzero().squeeze(1)
                    rows, part, k, frame = rows[stay], part[stay], k[stay], frame[stay]
                    genes, children, fitness = genes[stay], children[stay], fitness[stay]
                if not len(rows):
                    return images, met
        chosen, least = fitness.argmin(dim=1), fitness.amin(dim=1)
        images[rows] = _pick(part, genes, chosen, least, k, frame)
        return images, met


def _judge(problem: Problem, genes: Tensor, k: Counts, frame: Tensor) -> tuple[Tensor, Tensor]:
    """The fitness of some individuals, lower is better, and which fool."""
    owners = torch.arange(len(problem), device=k.device)
    found = []
    for some in blocks(problem, genes.shape[1]):
        owner = owners.repeat_interleave(some.stop - some.start)
        painted = paint(problem[owner], genes[:, some].flatten(0, 1), k[owner], frame[owner])
        found.append(losses_of_candidates(problem, painted, "cross_entropy"))
    losses, fools = zip(*found, strict=True)
    return torch.cat(losses, dim=1).float(), torch.cat(fools, dim=1)


def _pick(
    problem: Problem, genes: Tensor, chosen: Tensor, loss: Tensor, k: Counts, frame: Tensor
) -> Images:
    """One individual of each image, or the clean one where its loss was no number."""
    individual = genes[torch.arange(len(genes), device=k.device), chosen]
    adv = paint(problem, individual, k, frame)
    return torch.where((loss < torch.inf).view(-1, 1, 1, 1), adv, problem.images)


def draw_genes(problem: Problem, population: int, k: int, use: str) -> Tensor:
    """A population for each image, (batch, individual, pixel, gene).

    An individual is k rows of genes in [0, 1]: how far down, how far across, and a colour. Any
    position and any colour may be drawn.
    """
    channels = problem.images.shape[1]  # pixels come first in a draw, lest it depend on k
    place = problem.rng.uniform(k, population, 2, step=0, use=f"{use}, places")
    colour = problem.rng.normal(k, population, channels, step=0, use=f"{use}, colours")
    colour = (_MIDDLE + _SPREAD * colour).clamp(0, 1)
    return torch.cat((place, colour), dim=3).transpose(1, 2).contiguous()


def plant(problem: Problem, genes: Tensor, frame: Tensor) -> Tensor:
    """The population with the pixels of the start, if any, as its first individual.

    Pixels that changed most come first. If there are fewer than k, the first is repeated.
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
