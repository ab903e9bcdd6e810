"""FGSM: one step whose outcome on a linear model can be written down."""

import torch
from torch import Tensor, nn

from pinprick import Classifier, run_attack
from pinprick.attacks import FGSM, IFGSM
from pinprick.oracle import exact_images, exact_linear

SHAPE = (3, 6, 5)


def test_is_the_sign_of_the_weights_on_two_classes() -> None:
    model, images = exact_linear(2, SHAPE), exact_images(5, SHAPE)
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    weight = model.net[1].weight.detach()  # type: ignore[index]
    uphill = (weight[1 - labels] - weight[labels]).view_as(images)
    clear = uphill != 0  # equal weights cancel up to rounding, which has a sign of its own
    expected = images + 1 / 64 * uphill.sign()
    adv = run_attack(FGSM(eps=1 / 64), model, images, labels).adversarial
    assert torch.equal(adv[clear], expected[clear])
    aimed = run_attack(FGSM(eps=1 / 64), model, images, labels, targets=1 - labels).adversarial
    assert torch.equal(aimed[clear], expected[clear])


def test_is_ifgsm_with_one_step_of_full_length(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    once = run_attack(FGSM(eps=0.05), curved, images, curved_labels)
    same = run_attack(IFGSM(eps=0.05, steps=1, step_size=0.05), curved, images, curved_labels)
    assert torch.equal(once.adversarial, same.adversarial)
    assert (once.l0_elements > 0).all()


def test_a_target_comes_nearer_and_a_label_goes_away(
    linear: Classifier, images: Tensor, labels: Tensor, targets: Tensor
) -> None:
    left = run_attack(FGSM(), linear, images, labels)
    assert (left.goal.cross_entropy(left.adversarial_logits) < 0).all()
    for result in (left, run_attack(FGSM(), linear, images, labels, targets=targets)):
        before = result.goal.cross_entropy(result.clean_logits)
        assert (result.goal.cross_entropy(result.adversarial_logits) < before).all()


def test_changes_nothing_where_it_may_not(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    allowed = torch.zeros(SHAPE[1:], dtype=torch.bool)
    allowed[:2] = True
    changed = run_attack(FGSM(), linear, images, labels, allowed=allowed).delta != 0
    assert not changed[:, :, 2:].any()
    assert changed[:, :, :2].any()


def test_elements_without_a_gradient_stay(images: Tensor) -> None:
    layer = nn.Linear(90, 2, bias=False).double()
    layer.weight.data.zero_()
    layer.weight.data[0, 7] = 1.0  # the model looks at one element alone
    net = nn.Sequential(nn.Flatten(), layer)
    result = run_attack(FGSM(), net, images, torch.zeros(6, dtype=torch.long))
    assert result.l0_elements.tolist() == [1] * 6
    assert (result.delta.flatten(1)[:, 7] < 0).all()
