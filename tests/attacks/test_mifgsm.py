"""MI-FGSM: what momentum adds to I-FGSM, and that nothing else is added."""

import torch
from torch import Tensor

from pinprick import Classifier, run_attack
from pinprick.attacks import IFGSM, MIFGSM


def test_without_momentum_it_is_ifgsm(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    mifgsm = run_attack(MIFGSM(momentum=0.0), curved, images, curved_labels)
    ifgsm = run_attack(IFGSM(eps=16 / 255, step_size=None), curved, images, curved_labels)
    assert torch.equal(mifgsm.adversarial, ifgsm.adversarial)


def test_follows_the_published_recursion(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    eps, steps, momentum = 0.05, 4, 0.7
    adv, velocity = images, torch.zeros_like(images)
    for _ in range(steps):
        leaf = adv.clone().requires_grad_()
        loss = torch.nn.functional.cross_entropy(curved(leaf), curved_labels, reduction="sum")
        (grad,) = torch.autograd.grad(loss, leaf)
        # the authors' code divides by the mean, the paper by the sum: only the sign is used
        velocity = momentum * velocity + grad / grad.abs().mean(dim=(1, 2, 3), keepdim=True)
        adv = adv + eps / steps * velocity.sign()
        adv = torch.minimum(torch.maximum(adv, images - eps), images + eps).clamp(0, 1)
    attack = MIFGSM(eps=eps, steps=steps, momentum=momentum)
    result = run_attack(attack, curved, images, curved_labels)
    assert torch.equal(result.adversarial, adv)


def test_momentum_matters(curved: Classifier, images: Tensor, curved_labels: Tensor) -> None:
    plain, heavy = (
        run_attack(MIFGSM(eps=0.3, momentum=momentum), curved, images, curved_labels)
        for momentum in (0.0, 1.0)
    )
    assert not torch.equal(plain.adversarial, heavy.adversarial)
