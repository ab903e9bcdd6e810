"""TI-FGSM: what smoothing adds, and the attacks it becomes without it."""

import pytest
import torch
from torch import Tensor

from pinprick import Attack, BadInput, Classifier, run_attack
from pinprick.attacks import DIFGSM, FGSM, MIFGSM, TIFGSM
from pinprick.attacks.tifgsm import Kernel

KERNELS: tuple[Kernel, ...] = ("gaussian", "uniform", "linear")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("steps", "momentum", "diversity", "base"),
    [
        (1, 0.0, 0.0, FGSM(eps=16 / 255)),
        (10, 1.0, 0.0, MIFGSM()),
        (10, 1.0, 0.7, DIFGSM(steps=10, step_size=None, momentum=1.0, diversity=0.7)),
    ],
    ids=["FGSM", "MI-FGSM", "M-DI-FGSM"],
)
def test_a_kernel_of_one_pixel_leaves_the_base_attack(
    curved: Classifier,
    images: Tensor,
    curved_labels: Tensor,
    kernel: Kernel,
    steps: int,
    momentum: float,
    diversity: float,
    base: Attack,
) -> None:
    attack = TIFGSM(
        kernel=kernel, kernel_size=1, steps=steps, momentum=momentum, diversity=diversity
    )
    first, second = (run_attack(a, curved, images, curved_labels) for a in (attack, base))
    assert torch.equal(first.adversarial, second.adversarial)


@pytest.mark.parametrize("kernel", KERNELS)
def test_neighbouring_elements_go_together(
    linear: Classifier, images: Tensor, labels: Tensor, kernel: Kernel
) -> None:
    def agreement(attack: Attack) -> float:
        moved = run_attack(attack, linear, images, labels).delta.sign()
        return (moved[..., 1:] == moved[..., :-1]).double().mean().item()

    assert agreement(TIFGSM(kernel=kernel, kernel_size=5)) > agreement(FGSM()) + 0.1


def test_is_random_only_with_diversity() -> None:
    assert not TIFGSM().facts().random
    assert TIFGSM(diversity=0.7).facts().random


@pytest.mark.parametrize("size", [2, 4])
def test_refuses_a_kernel_without_a_middle(size: int) -> None:
    with pytest.raises(BadInput, match=r"^tifgsm needs kernel_size to be odd, .* got"):
        TIFGSM(kernel_size=size)
