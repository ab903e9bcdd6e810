"""SAPF: the change as a product of sizes and binary gates.

Fan, Wu, Li, Zhang, Li, Li, Yang: Sparse adversarial attack via perturbation factorization.
ECCV 2020.

    d = e * G,   G in {0, 1}^D
    minimise   |d|_2^2 + c * max(margin(f(x + d)), 0) + w * sum over groups |G_g|_2,   sum G = k

in turns, from ``G = 1`` and ``e = 0``, with ``g`` the gradient of the ``max``, for one ``c`` after
another:

    e = e - s * (2 e G^2 + c g G)                                    ``steps`` times
    G = one step of ADMM with the pull 2 G e^2 + c g e               ``gate_steps`` times
    e as above, with the k largest G at 1 and the others at 0        ``tune_steps`` times

The steps ``s`` shrink (``decay``). ``Gates`` shows how gates are driven to zero or one. The weight
``c`` is searched for each image: multiplied by ten until it fools, then the middle of the bracket.
One forward and one backward pass per step.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.parts.best import Best, Lowest
from pinprick.parts.largest import mask_largest
from pinprick.parts.smallest_k import K, run_at_k
from pinprick.parts.units import Units, shrink_groups
from pinprick.parts.weight_search import WeightSearch
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Counts, Images, Logits, Mask, PerImage

_GROWTH = 10.0  # factor of c until an image is fooled
_MOST, _MOST_GROUPS, _MOST_SUM = 20.0, 100.0, 0.01  # largest penalties
_SIZE = 3072  # elements of the image that the penalty of the sum is given for


@dataclass(frozen=True, kw_only=True)
class SAPF(Attack):
    """Sizes and binary gates of the change in turns, the gates by ADMM, at k elements.

    Attributes:
        k: Number of elements that may change, or "smallest" to seek the fewest for each image.
        steps: Steps on the sizes, before each choice of the gates.
        gate_steps: Steps of ADMM on the gates.
        turns: Number of turns of sizes and gates.
        tune_steps: Steps on the sizes of the chosen elements, at the end.
        searches: Weights ``c`` that are tried per image.
        weight: The first ``c``.
        step_size: The first step.
        decay: Factor of the step after every ``decay_every`` steps.
        decay_every: Steps between two decays.
        least_step: The smallest step.
        rho: The first penalty of a gate for being neither zero nor one.
        rho_sum: The first penalty per open gate too many, in an image of 3072 elements.
        rho_growth: Factor of both penalties per step.
        group: Side of a group, in pixels.
        group_weight: Weight of the length of a group's gates, ``w``.
        rounds: Values of k that are tried per image at most, if k is "smallest".
    """

    card: ClassVar[Card] = Card(
        name="sapf",
        title="SAPF",
        norm="l0",
        unit="elements",
        kind="budget",
        access="gradients",
        targeted=True,
        masked=True,
        paper="Sparse adversarial attack via perturbation factorization, ECCV 2020",
        differences=(
            "Exactly the `k` largest gates are opened. The authors open those above 1/2, whose "
            "number is only near `k`.",
            "All images of the last stage are tested, and the nearest that fools is returned. The "
            "authors return the last image of the last search that fooled.",
            "Untargeted attacks and batches are ours. The authors' code is targeted, for one "
            "image at a time.",
            "Groups are squares instead of SLIC superpixels, so nothing depends on a segmentation.",
            "The penalty of the sum is proportional to 1 / D. At 150,528 elements the published "
            "one makes the step on the gates diverge.",
            "The optional weights by local contrast are left out.",
            "If no try fools, the one with the lowest loss is returned.",
            '`k="smallest"` is ours.',
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "steps": 60,
            "gate_steps": 100,
            "tune_steps": 40,
            "searches": 5,
            "weight": 0.1,
            "decay_every": 3,
            "rho_growth": 1.1,
        },
    }

    k: K = setting(200, least=1)
    steps: int = setting(2000, least=1)
    gate_steps: int = setting(2000, least=1)
    turns: int = setting(1, least=1)
    tune_steps: int = setting(1000, least=1)
    searches: int = setting(6, least=1)
    weight: float = setting(1e-3, above=0)
    step_size: float = setting(0.1, above=0)
    decay: float = setting(0.9, above=0, most=1)
    decay_every: int = setting(50, least=1)
    least_step: float = setting(1e-3, above=0)
    rho: float = setting(5e-3, above=0)
    rho_sum: float = setting(1e-4, above=0)
    rho_growth: float = setting(1.01, least=1)
    group: int = setting(3, least=1)
    group_weight: float = setting(1e-3, least=0)
    rounds: int = setting(10, least=1)

    def facts(self) -> Card:
        search = self.turns * (self.steps + self.gate_steps) + self.tune_steps
        passes = self.searches * search
        return self.card.at_k(self.k, self.rounds, forwards=passes, backwards=passes)

    def __call__(self, problem: Problem) -> Images:
        return run_at_k(problem, self._at_k, Units("elements"), self.k, self.rounds, retries=0)

    def _at_k(self, problem: Problem, k: Counts, near: Images, trial: int) -> tuple[Images, Mask]:
        """The nearest image that fools with k elements; where none does, the best try."""
        images = problem.images
        clean = images.to(torch.promote_types(images.dtype, torch.float32)).contiguous()
        free = (
            torch.ones_like(clean) if problem.allowed is None else problem.allowed.to(clean.dtype)
        )
        k = torch.minimum(k, free.flatten(1).sum(dim=1).long())
        most = int(k.max())
        best, tries = Best(images), Lowest(images)
        search = WeightSearch(clean.new_full((len(problem),), self.weight), _GROWTH)
        for _ in range(self.searches):
            sizes, gates = self._take_turns(problem, free, k, search.weight)
            ranked = gates.masked_fill(free == 0, -torch.inf).flatten(1)
            chosen = mask_largest(ranked, k, most, above=-math.inf).view_as(free).to(free.dtype)
            search.learn(self._tune(problem, sizes, chosen, search.weight, best, tries))
        found = best.cost.isfinite()
        return torch.where(found.view(-1, 1, 1, 1), best.images, tries.images), found

    def _take_turns(
        self, problem: Problem, free: Tensor, k: Counts, weight: PerImage
    ) -> tuple[Tensor, Tensor]:
        """The sizes of all elements, and how far the gate of each is open."""
        sizes, gates = torch.zeros_like(free), Gates(free, k, self.group, self.group_weight)
        for turn in range(self.turns):
            for step in range(turn * self.steps, (turn + 1) * self.steps):
                if problem.all_refused:
                    break
                sizes, _, _ = resize(problem, sizes, gates.values, weight, self._step_size(step))
            for step in range(turn * self.gate_steps, (turn + 1) * self.gate_steps):
                if problem.all_refused:
                    break
                _, _, pull = ask(problem, sizes * gates.values, weight)
                pull = 2 * gates.values * sizes.square() + pull * sizes
                grown = self.rho_growth**step
                gates.step(pull, self._step_size(step), self.rho * grown, self.rho_sum * grown)
        return sizes, gates.values

    def _tune(
        self,
        problem: Problem,
        sizes: Tensor,
        chosen: Tensor,
        weight: PerImage,
        best: Best,
        tries: Lowest,
    ) -> Mask:
        """Descend on the chosen elements alone, and say which images fooled on the way."""
        everyone = torch.arange(len(problem), device=sizes.device)
        fooled = torch.zeros_like(weight, dtype=torch.bool)
        for step in range(self.turns * self.steps, self.turns * self.steps + self.tune_steps):
            sizes, adv, logits = resize(problem, sizes, chosen, weight, self._step_size(step))
            met = tries.offer(adv, logits, problem.goal, everyone)
            length = (adv.to(sizes.dtype) - problem.images.to(sizes.dtype)).flatten(1)
            best.offer(adv, length.square().sum(dim=1), met)
            fooled |= met
            if problem.all_refused:
                break
        return fooled

    def _step_size(self, step: int) -> float:
        return max(self.step_size * self.decay ** (step // self.decay_every), self.least_step)


class Gates:
    """A gate for each element, driven to zero or one by ADMM; all begin open.

    Wu, Ghanem: lp-box ADMM: a versatile framework for integer programming. TPAMI 2019.

    A vector is binary if it lies both in the cube [0, 1]^n and on the sphere around (1/2, ..., 1/2)
    through the corners of the cube. So the gates ``G`` have a copy in each, a third with shrunk
    groups, and a multiplier for each copy and for the sum:

        y1 = cube(G + z1 / r),   y2 = sphere(G + z2 / r),   y3 = shrink(G + z3 / r)
        G  = G - s * (pull + sum_i (z_i + r (G - y_i)) + z4 + r4 (sum G - k))
        z_i += r (G - y_i),      z4 += r4 (sum G - k)

    The penalties ``r`` and ``r4`` grow from step to step, which enforces the copies and k.

    Attributes:
        values: How far each gate is open; zero where nothing may change.

    Args:
        free: One where values may change, zero elsewhere.
        k: Number of gates per image that are to be open.
        group: Side of a group, in pixels.
        group_weight: Weight of the length of a group's gates.
    """

    def __init__(self, free: Tensor, k: Counts, group: int, group_weight: float) -> None:
        self._free, self._group, self._group_weight = free, group, group_weight
        self._number, self._k = _wide(free.flatten(1).sum(dim=1)), _wide(k.to(free.dtype))
        self.values = free
        self._duals = [torch.zeros_like(free) for _ in range(3)]
        self._dual_sum = torch.zeros_like(self._k)

    def step(self, pull: Tensor, step_size: float, rho: float, rho_sum: float) -> None:
        """One step; ``pull`` is the gradient of all that is no constraint."""
        penalties = (min(rho, _MOST), min(rho, _MOST), min(rho, _MOST_GROUPS))
        each = min(rho_sum, _MOST_SUM) * _SIZE / self._number
        copies = self._copies(penalties)
        towards = pull + self._dual_sum + each * self._excess()
        for dual, penalty, copy in zip(self._duals, penalties, copies, strict=True):
            towards = towards + dual + penalty * (self.values - copy)
        self.values = self._free * (self.values - step_size * towards)
        for dual, penalty, copy in zip(self._duals, penalties, copies, strict=True):
            dual += penalty * (self.values - copy)
        self._dual_sum = self._dual_sum + each * self._excess()

    def _copies(self, penalties: tuple[float, float, float]) -> tuple[Tensor, Tensor, Tensor]:
        """The nearest points in the cube and on the sphere, and the one with shrunk groups."""
        cube, sphere, groups = (
            self.values + dual / penalty
            for dual, penalty in zip(self._duals, penalties, strict=True)
        )
        return (
            cube.clamp(0, 1),
            into_sphere(sphere, self._free),
            shrink_groups(groups, self._group_weight / penalties[2], self._group),
        )

    def _excess(self) -> Tensor:
        """How much more than k is open."""
        return _wide(self.values.flatten(1).sum(dim=1)) - self._k


def into_sphere(point: Tensor, free: Tensor) -> Tensor:
    """The nearest point on the sphere through all binary ones, where ``free`` is one."""
    away = free * (point - 0.5)
    length = away.flatten(1).square().sum(dim=1).sqrt().clamp_min(torch.finfo(point.dtype).tiny)
    radius = free.flatten(1).sum(dim=1).sqrt() / 2
    return free * (0.5 + away * _wide(radius / length))


def _wide(values: PerImage) -> Tensor:
    return values.view(-1, 1, 1, 1)


def resize(
    problem: Problem, sizes: Tensor, gates: Tensor, weight: PerImage, step_size: float
) -> tuple[Tensor, Images, Logits]:
    """The sizes after a gradient step, and the image before it with its logits."""
    adv, logits, pull = ask(problem, sizes * gates, weight)
    return sizes - step_size * (2 * sizes * gates.square() + pull * gates), adv, logits


def ask(problem: Problem, change: Tensor, weight: PerImage) -> tuple[Images, Logits, Tensor]:
    """The changed image, its logits, and the gradient of the weighted hinge by the change.

    An element beyond the edge of the box has none, as the image stops at the edge.
    """
    images, goal = problem.images, problem.goal
    moved = images.to(change.dtype) + change
    adv = torch.where(change == 0, images, moved.clamp(0, 1).to(images.dtype))
    logits, grad = problem.logits_and_gradient(adv, goal.margin)
    push = torch.where(goal.margin(logits) >= 0, weight, 0)  # a tie counts as not fooled
    inside = (moved >= 0) & (moved <= 1)
    return adv, logits, push.view(-1, 1, 1, 1) * grad.to(change.dtype).where(inside, 0)
