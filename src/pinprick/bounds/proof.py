"""What a proof says about each image, and the check that every claim has to pass."""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import nn

from pinprick.batch_rows import BatchRows
from pinprick.bounds.read_network import double_copy
from pinprick.goal import Goal
from pinprick.metrics.unit import Unit
from pinprick.model import Classifier
from pinprick.parts.units import Units
from pinprick.types import Images, Mask, PerImage


class Status(StrEnum):
    """What is known about the fewest units of an image; the value is what people read."""

    OPTIMAL = "optimal"
    BETTER = "better attack found"
    BETWEEN = "between"
    ALREADY = "already fooled"
    NEVER = "cannot be fooled"


def status_of(first: float, lower: float, upper: float) -> Status:
    """What both bounds say; ``first`` is the upper bound that the search started with."""
    if upper == 0:
        return Status.ALREADY
    if upper < first:
        return Status.BETTER
    if lower < upper:
        return Status.BETWEEN
    return Status.OPTIMAL if upper < math.inf else Status.NEVER


@dataclass(frozen=True, eq=False)
class Proof(BatchRows):
    """Bounds on the fewest units that fool a network, per image.

    No image that changes fewer than ``lower`` units fools the network. It does not even come within
    ``slack`` logits of it, so neither rounding nor the tolerance of the solver decides. The network
    computes in exact arithmetic here, with the weights that it has.

    Attributes:
        images: The clean images.
        goal: The goal of each image.
        lower: No image with fewer changed units fools; infinite where no image fools at all.
        upper: Changed units of ``adversarial``; infinite where no image that fools is known.
        status: What is known, in words. A better attack is proved optimal where both bounds agree.
        adversarial: The image with the fewest changed units that is known to fool, in float32 and
            in float64; the clean image where none is.
        slack: By how many logits every image with fewer than ``lower`` units misses the goal, at
            least.
        seconds: Time that each image took.
        unit: What is counted.
        model: Name of the model.
    """

    images: Images
    goal: Goal
    lower: PerImage
    upper: PerImage
    status: tuple[Status, ...]
    adversarial: Images
    slack: PerImage
    seconds: PerImage
    unit: Unit
    model: str

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        """One line: the model, how many images, how many of them are proved."""
        return (
            f"<Proof: {self.unit} on {self.model or 'unnamed model'}, {len(self)} images, "
            f"proved {int(self.proved.sum())}>"
        )

    @property
    def proved(self) -> Mask:
        """Where both bounds agree."""
        return self.lower == self.upper

    @property
    def better(self) -> Mask:
        """Where an image with fewer changed units than that of the attack was found."""
        found = [status is Status.BETTER for status in self.status]
        return torch.tensor(found, dtype=torch.bool, device=self.images.device)


class Judge:
    """Decides in float32 and in float64 whether images fool a network."""

    def __init__(self, model: Classifier) -> None:
        double = double_copy(model)
        assert isinstance(double.net, nn.Module)
        single = copy.deepcopy(double.net).float()
        self._networks = (double, Classifier(single, mean=model.mean, std=model.std))

    def fools(self, images: Images, goal: Goal) -> Mask:
        """Which images meet the goal in both precisions."""
        met = torch.ones(len(images), dtype=torch.bool)
        with torch.no_grad():
            for network, dtype in zip(self._networks, (torch.float64, torch.float32), strict=True):
                met &= goal.met(network(images.to(dtype)))
        return met


def wrong_claims(proof: Proof, judge: Judge) -> Iterator[str]:
    """One sentence per claim of the proof that does not hold, as far as images can show it.

    Whether fewer than ``lower`` units are enough takes another proof.
    """
    changed = Units(proof.unit).changed(proof.adversarial, proof.images).sum(dim=1).double()
    fools = judge.fools(proof.adversarial, proof.goal)
    before = judge.fools(proof.images, proof.goal)
    inside = ((proof.adversarial >= 0) & (proof.adversarial <= 1)).flatten(1).all(dim=1)
    known = proof.upper.isfinite()
    whole = proof.lower == proof.lower.round()
    claims = {
        "the lower bound is above the upper one": proof.lower > proof.upper,
        "the lower bound is no whole number from 0 on": ~((proof.lower >= 0) & whole),
        "the adversarial image does not fool in float32 and float64": known & ~fools,
        "the adversarial image changes another number of units": known & (changed != proof.upper),
        "the adversarial image is changed, but no upper bound": ~known & (changed > 0),
        "the adversarial image leaves the box": ~inside,
        "the clean image fools, but the lower bound is not 0": before & (proof.lower > 0),
        "the status does not follow from the bounds": torch.tensor(
            [
                not _follows(*row)
                for row in zip(
                    proof.status, proof.lower.tolist(), proof.upper.tolist(), strict=True
                )
            ],
            dtype=torch.bool,
        ),
    }
    for claim, wrong in claims.items():
        for row in wrong.nonzero().squeeze(1).tolist():
            yield f"image {row}: {claim}"


def _follows(status: Status, lower: float, upper: float) -> bool:
    """Whether the bounds are such as the status says."""
    infinite = float("inf")
    return {
        Status.OPTIMAL: lower == upper < infinite and lower > 0,
        Status.BETTER: 0 < upper < infinite,
        Status.BETWEEN: lower < upper,
        Status.ALREADY: lower == upper == 0,
        Status.NEVER: lower == upper == infinite,
    }[status]
