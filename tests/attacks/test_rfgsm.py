"""R-FGSM: a random step and a signed one, together no longer than eps."""

import pytest
import torch
from torch import Tensor

from pinprick import BadInput, Classifier, run_attack
from pinprick.attacks import RFGSM

EPS = 1 / 16


@pytest.mark.parametrize("random_step", [None, 1 / 64, 3 / 64])
def test_every_element_moves_by_the_sum_or_the_difference_of_the_steps(
    linear: Classifier, images: Tensor, labels: Tensor, random_step: float | None
) -> None:
    attack = RFGSM(eps=EPS, random_step=random_step)
    size = run_attack(attack, linear, images, labels).delta.abs()
    first = EPS / 2 if random_step is None else random_step
    difference = abs(EPS - first - first)
    assert ((size - EPS).abs() < 1e-12).logical_or((size - difference).abs() < 1e-12).all()
    assert size.max() <= EPS + 1e-12
    assert 0.4 < (size > (EPS + difference) / 2).double().mean() < 0.6  # a fair coin


def test_stays_within_eps_at_the_edge_of_the_box(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    edge = (images * 4 - 1.5).clamp(0, 1)
    with torch.no_grad():
        labels = linear(edge).argmax(dim=1)
    result = run_attack(RFGSM(eps=EPS), linear, edge, labels)
    assert (result.linf <= EPS + 1e-12).all()
    assert result.adversarial.min() >= 0
    assert result.adversarial.max() <= 1


def test_the_random_step_keeps_to_the_mask(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    allowed = torch.zeros(6, 5, dtype=torch.bool)
    allowed[2:4] = True
    changed = run_attack(RFGSM(), linear, images, labels, allowed=allowed).delta != 0
    assert not (changed & ~allowed).any()
    assert changed.any()


def test_draws_again_for_another_seed(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    first, second = (run_attack(RFGSM(), linear, images, labels, seed=seed) for seed in (0, 1))
    assert not torch.equal(first.adversarial, second.adversarial)


@pytest.mark.parametrize("random_step", [EPS, 1.0])
def test_refuses_a_random_step_that_leaves_no_room(random_step: float) -> None:
    with pytest.raises(BadInput, match=r"^rfgsm needs random_step below eps = 0.0625"):
        RFGSM(eps=EPS, random_step=random_step)
