"""I-FGSM: steps that add up to the radius, and no further."""

import torch
from torch import Tensor

from pinprick import Classifier, run_attack
from pinprick.attacks import IFGSM


def test_no_step_size_means_the_radius_in_equal_parts(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(IFGSM(eps=1 / 16, steps=4, step_size=None), linear, images, labels)
    same = run_attack(IFGSM(eps=1 / 16, steps=4, step_size=1 / 64), linear, images, labels)
    assert torch.equal(result.adversarial, same.adversarial)
    assert (result.linf == 1 / 16).all()


def test_long_steps_end_on_the_ball(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    result = run_attack(IFGSM(eps=1 / 32, steps=5, step_size=1 / 16), curved, images, curved_labels)
    assert (result.linf <= 1 / 32).all()
