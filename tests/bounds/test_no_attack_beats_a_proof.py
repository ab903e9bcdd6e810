"""No attack needs fewer units than a certificate or a proved optimum says.

Every l0 attack is run with the settings of the contract. Left out are attacks with trained weights,
which are of one network.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import pytest
import torch
from contract.specifications import SPECS
from torch import Tensor

from bounds.small_networks import small_cnn, small_images
from pinprick import ATTACKS, Attack, Classifier, Goal, build, run_attack
from pinprick.bounds.certify import certify
from pinprick.bounds.known_optima import known_optima
from pinprick.metrics.unit import Unit

pytestmark = pytest.mark.plain  # whole attacks: shape checks take four times as long
QUICK = ("greedy", "jsma", "fmn in pixels", "sigma_zero", "pinprick in pixels")
NODES = 200  # enough to certify one unit
SPARSE = [
    name
    for name, spec in SPECS.items()
    if (name in ATTACKS or name in QUICK)
    and (build(spec).facts().norm, build(spec).facts().inputs) == ("l0", None)
]
UNITS: tuple[Unit, ...] = ("elements", "pixels")


@dataclass(frozen=True)
class Case:
    """A network, images, and the fewest units that may fool them, by unit."""

    model: Classifier
    images: Tensor
    goal: Goal
    least: dict[Unit, Tensor]


@cache
def certified(targeted: bool) -> Case:
    """A convolutional network with certificates for up to two units."""
    model = small_cnn(3, channels=2)
    images = small_images(60, (2, 6, 5), seed=3)
    with torch.no_grad():
        logits = model(images)
    best = logits.topk(2, dim=1).values
    rows = (best[:, 0] - best[:, 1]).topk(6).indices
    images, labels = images[rows], logits[rows].argmax(dim=1)
    goal = Goal(labels, (labels + 1) % 3 if targeted else None)
    found = {
        unit: certify(model, images, labels, targets=goal.targets, t=2, unit=unit, nodes=NODES)
        for unit in UNITS
    }
    assert all((each.certified >= 1).sum() >= 3 for each in found.values())
    return Case(model, images, goal, {unit: each.lower for unit, each in found.items()})


@cache
def proved(targeted: bool) -> Case:
    """A fully connected network of colour pictures with the fewest units of each image."""
    kind = "targeted" if targeted else "untargeted"
    known = {unit: known_optima(f"tinted_digits/{kind}/{unit}") for unit in UNITS}
    one, rows = known["pixels"], torch.arange(6)
    least = {unit: each.fewest[rows] for unit, each in known.items()}
    return Case(one.model, one.images[rows], one.goal[rows], least)


def beaten(attack: Attack, case: Case) -> list[str]:
    """The images for which the attack needs fewer units than should be possible."""
    result = run_attack(
        attack, case.model, case.images, case.goal.labels, targets=case.goal.targets
    )
    needed = {"elements": result.needed_elements, "pixels": result.needed_pixels}
    return [
        f"image {row}: {found} {unit}, at least {least}"
        for unit in UNITS
        for row, (found, least) in enumerate(
            zip(needed[unit].tolist(), case.least[unit].tolist(), strict=True)
        )
        if found < least
    ]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SPARSE],
)
def test_no_attack_beats_a_proof(name: str) -> None:
    attack = build(SPECS[name])
    for targeted in (False, True) if attack.facts().targeted else (False,):
        assert beaten(attack, certified(targeted)) == []
        assert beaten(attack, proved(targeted)) == []


def test_most_sparse_attacks_are_run() -> None:
    assert set(QUICK) < set(SPARSE)
    assert len(SPARSE) >= 25


@pytest.mark.parametrize("make", [certified, proved])
@pytest.mark.parametrize("targeted", [False, True])
def test_attacks_come_near_enough_to_show_a_wrong_proof(
    make: Callable[[bool], Case], targeted: bool
) -> None:
    case = make(targeted)
    higher = replace(case, least={unit: least + 1 for unit, least in case.least.items()})
    assert beaten(build(SPECS["pinprick in pixels"]), higher)
