"""Variants of attacks that the plans of the paper's claims name.

``Variant`` is WI-FGSM as printed with one of its parts replaced by the alternative that the paper
argues against. ``RandomSign`` is a start without any gradient. ``GeneratorPerTarget`` is EGS-TSSA
with one generator per class to reach.
"""

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal

import torch

from pinprick.attacks import EGSTSSA, IFGSM, WIFGSMPrinted
from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput
from pinprick.problem import Problem
from pinprick.settings import pixel_distance
from pinprick.types import Images

_BETA, _GAMMA, _ZETA = 2 / 3, -0.1, 1.1  # of the hard-concrete distribution, Louizos et al. 2018


@dataclass(frozen=True, kw_only=True)
class RandomSign(Attack):
    """Every element changes by eps, to a random side.

    Attributes:
        eps: Size of the change, where pixel values run from 0 to 1.
    """

    card: ClassVar[Card] = Card(
        name="random_sign",
        title="Random signs",
        norm="linf",
        kind="budget",
        access="labels",
        targeted=True,
        masked=False,
        random=True,
        paper="none",
        max_forwards=0,
        max_backwards=0,
    )

    eps: float = pixel_distance(4 / 255)

    def __call__(self, problem: Problem) -> Images:
        drawn = problem.rng.normal(*problem.images.shape[1:], step=0, use="random signs")
        side = torch.where(drawn >= 0, 1.0, -1.0).to(problem.images.dtype)
        return (problem.images + self.eps * side).clamp(0, 1)


@dataclass(frozen=True, kw_only=True)
class Variant(WIFGSMPrinted):
    """WI-FGSM as printed, with one of its parts replaced.

    Attributes:
        start: The dense attack whose change the gates weigh.
        rule: How the image stays valid: the paper's Omega ("box"), or clipping ("clip").
        relu: What keeps gates above zero: the tailored ReLU, a plain one, or none.
        slope: What stands in for the derivative of the step function: the paper's q_a
            ("gaussian"), 1 ("straight_through"), or that of the expected count of hard-concrete
            gates ("hard_concrete").
    """

    start: Attack = field(default_factory=IFGSM)
    rule: Literal["box", "clip"] = "box"
    relu: Literal["tailored", "plain", "none"] = "tailored"
    slope: Literal["gaussian", "straight_through", "hard_concrete"] = "gaussian"

    def facts(self) -> Card:
        facts, start = super().facts(), self.start.facts()
        kept_draws = self.relu != "tailored"  # drawn gates outlast the first step
        random = facts.random or start.random or kept_draws
        return replace(facts, random=random, masked=start.masked)

    def _dense(self) -> Attack:
        return self.start

    def _gates(self, w: Images) -> Images:
        if self.relu == "tailored":
            return super()._gates(w)
        return w.clamp(min=0) if self.relu == "plain" else w

    def _count_slope(self, gates: Images) -> Images:
        if self.slope == "gaussian":
            return super()._count_slope(gates)
        if self.slope == "straight_through":
            return torch.ones_like(gates)
        shift = _BETA * torch.tensor(-_GAMMA / _ZETA).log().item()
        chance = torch.sigmoid(gates - shift)
        return chance * (1 - chance)

    def _valid(self, x: Images, delta: Images, omega: Images, gates: Images) -> Images:
        if self.rule == "clip":
            return (x + gates * delta).clamp(0, 1)
        if self.relu == "none":  # a gate below zero is open, too
            return (x + omega * gates.sign() * delta).clamp(0, 1)
        return super()._valid(x, delta, omega, gates)


@dataclass(frozen=True, kw_only=True)
class GeneratorPerTarget(Attack):
    """EGS-TSSA where the target of an image decides which generator writes its perturbation.

    Attributes:
        folder: Folders of generators, each under the number of the class that it reaches.
        sha256: Hash of the weights of all of them; empty text for those that are there.
    """

    card: ClassVar[Card] = replace(EGSTSSA.card, name="egs_tssa_per_target")

    folder: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        if not self._generators():
            raise BadInput(
                f"there are no generators in {self.folder!r}; pinprick train-generator --target "
                "CLASS makes one, in a folder with the number of the class"
            )
        digests = [one.sha256 for one in self._generators().values()]
        digest = hashlib.sha256(" ".join(digests).encode()).hexdigest()
        if self.sha256 not in ("", digest):
            raise BadInput(f"the generators in {self.folder} are others than {self.sha256[:12]}")
        object.__setattr__(self, "sha256", digest)

    def facts(self) -> Card:
        first = next(iter(self._generators().values())).facts()
        return replace(
            self.card, max_forwards=first.max_forwards, max_backwards=first.max_backwards
        )

    def __call__(self, problem: Problem) -> Images:
        adv, targets = problem.images.clone(), problem.goal.targets
        if targets is None:
            raise BadInput("generators per target need a target")
        generators = self._generators()
        for target in targets.unique().tolist():
            rows = (targets == target).nonzero().squeeze(1)
            if target not in generators:
                raise BadInput(f"{self.folder} has no generator for class {target}")
            adv[rows] = generators[target](problem[rows])
        return adv

    def _generators(self) -> dict[int, EGSTSSA]:
        folders = sorted(Path(self.folder).glob("[0-9]*"), key=lambda path: int(path.name))
        return {int(path.name): EGSTSSA(weights=str(path)) for path in folders}
