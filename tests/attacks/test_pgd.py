"""PGD: random starts, of which each image keeps its best."""

from itertools import pairwise
from typing import Literal

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, run_attack
from pinprick.attacks import IFGSM, PGD

EPS = 0.01  # at which some of the images below are fooled and some are not


def test_starts_anywhere_in_the_ball(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    attack = PGD(eps=1 / 16, steps=1, step_size=1e-9)
    start = run_attack(attack, linear, images, labels).delta * 16
    assert start.abs().max() <= 1
    assert start.min() < -0.9
    assert start.max() > 0.9
    assert abs(start.mean()) < 0.1
    assert abs(start.square().mean() - 1 / 3) < 0.05  # the variance of a uniform number


def test_reaches_the_corner_that_ifgsm_reaches_on_a_linear_model(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    pgd = run_attack(PGD(eps=EPS, steps=20, step_size=EPS / 5), linear, images, labels)
    ifgsm = run_attack(IFGSM(eps=EPS, steps=20, step_size=EPS / 5), linear, images, labels)
    assert torch.allclose(pgd.linf, ifgsm.linf)
    assert torch.equal(pgd.success, ifgsm.success)


@pytest.mark.parametrize("loss", ["cross_entropy", "margin"])
@pytest.mark.parametrize("targeted", [False, True])
def test_more_restarts_are_never_worse(
    curved: Classifier,
    images: Tensor,
    curved_labels: Tensor,
    loss: Literal["cross_entropy", "margin"],
    targeted: bool,
) -> None:
    targets = (curved_labels + 1) % 4 if targeted else None
    results = [
        run_attack(
            PGD(eps=0.04, steps=3, step_size=0.02, restarts=restarts, loss=loss),
            curved,
            images,
            curved_labels,
            targets=targets,
        )
        for restarts in (2, 3, 6)
    ]
    for fewer, more in pairwise(results):
        assert (more.success >= fewer.success).all()
        still = ~more.success
        before, after = (
            getattr(result.goal, loss)(result.adversarial_logits) for result in (fewer, more)
        )
        assert (after[still] <= before[still] + 1e-12).all()


def test_images_that_are_fooled_take_no_part_in_later_restarts(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(PGD(eps=EPS, steps=4, restarts=3), linear, images, labels)
    assert 0 < result.success.sum() < len(images)
    assert (result.forwards[~result.success] == 3 * 5).all()
    assert (result.backwards[~result.success] == 3 * 4).all()
    assert (result.forwards[result.success] < 3 * 5).all()


def test_one_restart_needs_no_verdict(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    result = run_attack(PGD(steps=4), linear, images, labels)
    assert result.forwards.tolist() == [4] * 6


def test_the_start_keeps_to_the_mask(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    allowed = torch.zeros(6, 5, dtype=torch.bool)
    allowed[:, 3] = True
    changed = run_attack(PGD(restarts=2), linear, images, labels, allowed=allowed).delta != 0
    assert not (changed & ~allowed).any()
    assert changed.any()
