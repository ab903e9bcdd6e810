"""C&W L0: solve an l2 attack, freeze the pixels that did least for it, and again, until it fails.

Carlini, Wagner: Towards evaluating the robustness of neural networks. IEEE S&P 2017.

    x'   = (tanh(u) + 1) / 2 where open, x where frozen
    minimise over u   |x' - x|_2^2 + c * max(margin(f(x')) + 0.01, 0)         by Adam

until the ``max`` is below 0.0001. That ends a round: the open units that did least are frozen,
Adam starts anew from ``x'``, and ``c`` stays. After ``steps`` steps in vain ``c`` is doubled; where
it has come to ``last_weight``, the image is done. What a unit did, with ``d = x' - x``, is

    - sum g * d,   g = grad margin                   ranking "paper": how far it lowered the margin
    |sum d| * sum |grad of the loss above by u|      ranking "reference": about |d|^2

and a round freezes at most ``0.3 * sqrt(units changed)`` of the least, or up to the first that did
more than 0.01. All images go in lock-step, each in a round of its own; one forward and one backward
pass a step, for the gradient of the margin is all that either ranking needs.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar, Literal

from pinprick.attacks.card import Attack, Card
from pinprick.attacks.cw_l0.rounds import Pace, Rounds
from pinprick.errors import BadInput
from pinprick.parts.best import Best
from pinprick.parts.choice import check_choice
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class CWL0(Attack):
    """C&W's l2 attack on fewer and fewer pixels, until it fails.

    Attributes:
        steps: Adam steps with one ``c``.
        lr: Adam's learning rate, in units of ``u``.
        weight: The first ``c``.
        last_weight: A ``c`` that is not tried any more.
        unit: What is frozen and counted, "pixels" or "elements".
        ranking: What a unit did, by the formula of the "paper" or of its "reference" code.
        share: Freeze at least this share of the open units in a round, whatever they did.
        halve: Where a round fails, take it back and freeze half as many, down to one.
        max_passes: Most passes for an image; None for as many as it takes.
    """

    card: ClassVar[Card] = Card(
        name="cw_l0",
        title="C&W L0",
        norm="l0",
        unit="pixels",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="arXiv:1608.04644",
        differences=(
            "Values changed by less than 0.0001 are put back before the model is asked, so that "
            "what is counted is what was judged; the authors' code counts them as unchanged but "
            "leaves them in.",
            "Every image on the way is judged, and the sparsest that fooled is kept.",
            "The distance is to the image itself.",
            "An untargeted goal is treated like a targeted one, by the margin.",
            "`share` and `halve` are ours: they make rounds larger, and take back those that "
            "were too large.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "steps": 40,
            "lr": 0.1,
            "weight": 0.1,
            "last_weight": 100.0,
            "share": 0.1,
            "halve": True,
            "max_passes": 1000,
        }
    }

    steps: int = 1000
    lr: float = 0.01
    weight: float = 1e-3
    last_weight: float = 2e6
    unit: Literal["pixels", "elements"] = "pixels"
    ranking: Literal["paper", "reference"] = "paper"
    share: float = 0.0
    halve: bool = False
    max_passes: int | None = None

    def __post_init__(self) -> None:
        check_choice("cw_l0", "unit", self.unit, ("pixels", "elements"))
        check_choice("cw_l0", "ranking", self.ranking, ("paper", "reference"))
        if self.steps < 1 or not 0 < self.lr < math.inf:
            raise BadInput(f"cw_l0 needs steps >= 1 and lr > 0, got {self.steps} and {self.lr:g}")
        if not 0 < self.weight < self.last_weight < math.inf:
            raise BadInput(
                "cw_l0 needs weight above 0 and below last_weight, "
                f"got {self.weight:g} and {self.last_weight:g}"
            )
        if not 0 <= self.share < 1:
            raise BadInput(f"cw_l0 needs share from 0 to below 1, got {self.share:g}")
        if self.max_passes is not None and self.max_passes < 1:
            raise BadInput(f"cw_l0 needs max_passes >= 1, or none, got {self.max_passes}")

    def facts(self) -> Card:
        most = self.max_passes
        return replace(self.card, unit=self.unit, max_forwards=most, max_backwards=most)

    def __call__(self, problem: Problem) -> Images:
        best = Best(problem.images)
        pace = Pace(
            steps=self.steps,
            lr=self.lr,
            last_weight=self.last_weight,
            ranking=self.ranking,
            share=self.share,
            halve=self.halve,
        )
        rounds = Rounds(problem, Units(self.unit), self.weight, pace)
        for _ in count() if self.max_passes is None else range(self.max_passes):
            rounds = rounds[rounds.step(best)]
            if not len(rounds.rows):
                break
        return best.images
