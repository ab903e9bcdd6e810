"""HopSkipJump: along the boundary towards the clean image, its slope guessed from classes alone.

Chen, Jordan, Wainwright: HopSkipJumpAttack: a query-efficient decision-based attack. IEEE S&P 2020.

``x_1`` is the problem's start where that fools, otherwise noise, brought back to the boundary.
Then, with d the number of elements,

    g       = sum over b of (phi_b - mean phi) * u_b          from B_t points x_t + delta * u_b
    x'      = x_t + size * g / |g|                            sign(g) for linf
    x_{t+1} = the boundary on the way from x' to x

``phi`` is 1 where the model is fooled and -1 elsewhere, ``u`` are random directions, B_t is
B_1 * sqrt(t), delta is 0.1 at first and then |x' - x| / d. The step begins at |x_t - x| / sqrt(t)
and is halved until it fools. The boundary is found by bisection to d^(-3/2) of the way (d^-2 for
linf). Forward passes alone, of which the class is all that is looked at.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch

from pinprick.attacks.card import Attack, Card
from pinprick.attacks.hopskipjump.estimate import estimate_gradient
from pinprick.attacks.hopskipjump.search import Norm, distance, leap, to_boundary
from pinprick.errors import BadInput
from pinprick.parts.best import Best
from pinprick.parts.choice import check_choice
from pinprick.parts.starts import find_starts, salt_and_pepper, uniform_noise
from pinprick.problem import Problem
from pinprick.types import Images, Labels, PerImage

_FIRST_DELTA = 0.1


@dataclass(frozen=True, kw_only=True)
class HopSkipJump(Attack):
    """Steps along the boundary, in a direction that many small questions agree on.

    Attributes:
        norm: What is kept small, "l2" or "linf".
        steps: How many steps are made at most.
        queries: How often the model is asked about an image at most, in all.
        samples: Questions for the first estimate, B_1 above.
        most_samples: Questions for one estimate at most.
        gamma: How coarse the bisection is, in units of the paper's.
        tries: How often noise is tried at most, to find an image that fools.
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
            "The nearest image seen is given back, not the last.",
            "Nothing is finer than the images' own numbers: bisections and halvings end there, "
            "and delta is no smaller than twice their spacing. In single precision the authors' "
            "tolerance for l-infinity cannot be met.",
            "Noise goes to the boundary at once, without the blending before it, which is on "
            "the same line in l2.",
            "Every other try at a start is salt and pepper: to some models all uniform noise is "
            "of one class.",
            "What is left of the queries at the end goes to a last, shorter estimate.",
            "The mask of allowed places is ours.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"quick": {"queries": 1000}}

    norm: Norm = "l2"
    steps: int = 40
    queries: int = 25_000
    samples: int = 100
    most_samples: int = 10_000
    gamma: float = 1.0
    tries: int = 100

    def __post_init__(self) -> None:
        check_choice("hopskipjump", "norm", self.norm, ("l2", "linf"))
        for setting in ("steps", "queries", "samples", "most_samples", "tries"):
            if getattr(self, setting) < 1:
                raise BadInput(f"hopskipjump needs {setting} >= 1, got {getattr(self, setting)}")
        if not self.gamma > 0:
            raise BadInput(f"hopskipjump needs gamma above 0, got {self.gamma:g}")

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
        """Keep the images that are nearer than before; how far they are."""
        cost = distance(adv, problem.images, self.norm)
        best.offer(adv, cost, torch.ones_like(rows, dtype=torch.bool), rows)
        return cost
