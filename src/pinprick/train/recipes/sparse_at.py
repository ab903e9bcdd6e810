"""Sparse-AT: training on images with a few values pushed to the corner of the box.

Our own. The inner attack is the start of Pinprick (attacks/pinprick/) with the number of units
given instead of sought: k is drawn for each image, and a few passes each open the k gates of
highest promise (parts/choose_units.py).

    k   ~ U{k_min, ..., k_max}
    x'  = random corners in k random units, to begin with
    v   = running mean of the margin's gradient, each image's over its largest entry
    x'  = the corner that v points at in the k units of highest |v| * room, x elsewhere

Gates that are open count 1.4 times, and promises carry Gumbel noise that dies down over the
passes. Half-way there is a second random start: a network that only meets attacks from the clean
image learns to hide its gradient there, and random search fools it as easily as before. The network
is trained on the candidate of highest cross-entropy. The attack costs ``passes`` forward and
backward passes and one forward pass per batch. No step waits for the device: k is a tensor, bounded
by ``k_max``.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from pinprick.errors import BadInput
from pinprick.parts.choose_units import corner, draw_noise, promise, scaled
from pinprick.parts.largest import mask_largest
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.train.recipes.recipe import Recipe
from pinprick.types import Counts, Images

_MEMORY = 0.8  # weight of the past in the running mean
_LOYALTY = 0.4  # how much more a gate counts that is open already
_PROBE = 20  # passes of the attack that robust accuracy is watched with


@dataclass(frozen=True, kw_only=True)
class SparseAT(Recipe):
    """Training on images with a few units changed, as far as the box allows.

    Attributes:
        k_max: Most units that are changed in an image.
        k_min: Fewest; the number is drawn for each image.
        unit: What is counted: "elements" (channel values) or "pixels" (all channels of one).
        passes: Forward and backward passes of the attack per batch.
        starts: Random starts, one after another.
        temperature: Size of the noise on the choice of units in the first pass; falls to zero.
    """

    name: ClassVar[str] = "sparse_at"
    title: ClassVar[str] = "Sparse-AT"

    k_max: int = setting(32, least=1)
    k_min: int = setting(1, least=1)
    unit: Literal["elements", "pixels"] = "elements"
    passes: int = setting(8, least=1)
    starts: int = setting(2, least=1)
    temperature: float = setting(1.0, least=0, most=10)

    def __post_init__(self) -> None:
        if self.k_min > self.k_max:
            raise BadInput(
                f"sparse_at needs k_min <= k_max, got k_min {self.k_min}, k_max {self.k_max}"
            )
        if self.starts > self.passes:
            raise BadInput(
                f"sparse_at needs starts of at most passes, {self.passes}, got {self.starts}"
            )

    def perturb(self, problem: Problem, strength: float) -> Images:
        images, goal, units = problem.images, problem.goal, Units(self.unit)
        most = max(self.k_min, round(strength * self.k_max))
        count = problem.rng.integers(most - self.k_min + 1, step=0, use="sparse_at k") + self.k_min
        best, lowest = images, images.new_full((len(images),), torch.inf, dtype=torch.float32)
        mean, shut = torch.zeros_like(images), torch.zeros_like(units.total(images).bool())
        stretch = -(-self.passes // self.starts)  # passes from one start to the next
        for step in range(self.passes + 1):
            begins = step < self.passes and step % stretch == 0
            if begins:
                adv, gates = self._begin(problem, count, most, step), shut
            if step < self.passes:
                logits, grad = problem.logits_and_gradient(adv, goal.margin)
            else:
                with torch.no_grad():
                    logits = problem.logits(adv)
            loss = goal.cross_entropy(logits).float()
            better = loss < lowest
            lowest = torch.where(better, loss, lowest)
            best = torch.where(better.view(-1, 1, 1, 1), adv, best)
            if step == self.passes:
                break
            past = 0.0 if begins else _MEMORY
            mean = past * mean + (1 - past) * scaled(grad)
            edge = corner(mean, problem)
            scores = promise(mean, edge, images, units) * (1 + _LOYALTY * gates)
            warmth = self.temperature * (1 - step / self.passes)
            if warmth:
                number = gates.shape[1]
                scores = scores * draw_noise(problem, number, warmth, step, "sparse_at gates")
            gates = mask_largest(scores, count, most)
            adv = torch.where(units.spread(gates, images), edge, images)
        return best

    def _begin(self, problem: Problem, count: Counts, most: int, step: int) -> Images:
        """The images with random corners in random units."""
        images, units, rng = problem.images, Units(self.unit), problem.rng
        number = units.total(images[:1]).shape[1]
        gates = mask_largest(rng.uniform(number, step=step, use="sparse_at places"), count, most)
        colours = rng.integers(2, *images.shape[1:], step=step, use="sparse_at colours")
        return torch.where(units.spread(gates, images), colours.to(images.dtype), images)

    def probe(self, eps: float) -> Recipe:
        return replace(self, k_min=self.k_max, passes=max(_PROBE, self.passes))
