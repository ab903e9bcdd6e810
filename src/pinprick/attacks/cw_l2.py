"""C&W L2: Adam on the distance and the margin together, with a search for the weight of the latter.

Carlini, Wagner: Towards evaluating the robustness of neural networks. IEEE S&P 2017.

    x' = (tanh(u) + 1) / 2
    minimise over u   |x' - x|_2^2 + c * max(margin(f(x')) + confidence, 0)

for several ``c``, image by image: ten times as much as long as none has fooled, then the middle
between the largest that did not and the smallest that did. The nearest image that fooled is kept.
With ``stop_early`` an image leaves a search when its loss falls by less than 0.01 % in a tenth of
the steps. One forward and one backward pass per step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch

from pinprick.attacks.card import Attack, Card
from pinprick.parts.adam import Adam
from pinprick.parts.best import Best
from pinprick.parts.box import from_free, keep_allowed, slope, to_free
from pinprick.parts.weight_search import WeightSearch
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images, Mask, PerImage

_LOOKS = 10  # how often a search looks for images that stand still
_STILL = 0.9999  # a loss that is not below this share of the last look's


@dataclass(frozen=True, kw_only=True)
class CWL2(Attack):
    """Adam on distance and margin in a space without a box, with a search for their balance.

    Attributes:
        steps: Most gradient steps of a search.
        searches: Weights ``c`` that are tried per image.
        lr: Adam's learning rate, in units of ``u``.
        weight: The first ``c``.
        confidence: Least margin, in logits, by which an image must fool.
        stop_early: Stop a search whose loss stands still. A loss that swings may seem to.
    """

    card: ClassVar[Card] = Card(
        name="cw_l2",
        title="C&W L2",
        norm="l2",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:1608.04644",
        differences=(
            "The distance is to the clean image. The authors' code measures to the image after "
            "tanh and back, up to 1e-6 away.",
            "Elements outside the mask are not part of `u`.",
            "The hinge has a gradient at a tie too.",
            "The bisection of `c` goes on to the last search. From ten searches on, the "
            "authors' code repeats the largest `c` in the last one.",
            "Converged images leave one by one. In the authors' code the whole batch stops.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"steps": 125, "searches": 8, "lr": 0.05, "weight": 0.1, "stop_early": False}
    }

    steps: int = setting(10_000, least=1)
    searches: int = setting(9, least=1)
    lr: float = setting(0.01, above=0)
    weight: float = setting(1e-3, above=0)
    confidence: float = setting(0.0, least=0)
    stop_early: bool = True

    def facts(self) -> Card:
        passes = self.searches * self.steps
        return replace(self.card, max_forwards=passes, max_backwards=passes)

    def __call__(self, problem: Problem) -> Images:
        best = Best(problem.images)
        precise = torch.promote_types(problem.images.dtype, torch.float32)
        first = best.cost.new_full((len(problem),), self.weight, dtype=precise)
        search = WeightSearch(first, growth=10.0)
        for _ in range(self.searches):
            search.learn(self._search(problem, search.weight, best))
        return best.images

    def _search(self, problem: Problem, weight: PerImage, best: Best) -> Mask:
        """Descend with one weight per image; return which images fooled on the way."""
        fooled = torch.zeros_like(weight, dtype=torch.bool)
        rows = torch.arange(len(problem), device=weight.device)
        clean = problem.images.to(weight.dtype).contiguous()
        free, adam, last = to_free(clean), Adam(clean), torch.full_like(weight, torch.inf)
        for step in range(self.steps):
            adv = keep_allowed(from_free(free), clean, problem.allowed)
            asked = adv.to(problem.images.dtype)
            logits, grad = problem.logits_and_gradient(asked, problem.goal.margin)
            short = problem.goal.margin(logits).to(clean.dtype) + self.confidence
            met = problem.goal.met(logits) & ((short <= 0) | (self.confidence == 0))
            square = (adv - clean).flatten(1).square().sum(dim=1)
            best.offer(asked, square, met, rows)
            fooled[rows] |= met
            if problem.all_refused:
                break

            push = torch.where(short >= 0, weight, 0).view(-1, 1, 1, 1)
            grad = slope(free) * (2 * (adv - clean) + push * grad.to(clean.dtype))
            grad = keep_allowed(grad, torch.zeros_like(grad), problem.allowed)
            free = free - self.lr * adam.step(grad)
            if self.stop_early and (step + 1) % max(1, self.steps // _LOOKS) == 0:
                loss = square + weight * short.clamp_min(0)
                moving = loss < _STILL * last
                problem, rows, weight = problem[moving], rows[moving], weight[moving]
                clean, free, adam = clean[moving], free[moving], adam[moving]
                last = loss[moving]
                if not len(rows):
                    break
        return fooled
