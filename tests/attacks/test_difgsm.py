"""DI-FGSM: gradients through random views, drawn image by image."""

import pytest
import torch
from torch import Tensor, nn

from pinprick import Classifier, run_attack
from pinprick.attacks import DIFGSM, IFGSM, MIFGSM
from pinprick.parts.diversity import Resize

BOTH: tuple[Resize, Resize] = ("shrink", "enlarge")


@pytest.mark.parametrize("resize", BOTH)
def test_without_diversity_it_is_ifgsm(
    curved: Classifier, images: Tensor, curved_labels: Tensor, resize: Resize
) -> None:
    attack = DIFGSM(diversity=0.0, resize=resize)
    base = IFGSM(eps=16 / 255, steps=20, step_size=1 / 255)
    first, second = (run_attack(a, curved, images, curved_labels) for a in (attack, base))
    assert torch.equal(first.adversarial, second.adversarial)


def test_with_momentum_and_without_diversity_it_is_mifgsm(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    attack = DIFGSM(eps=0.05, steps=5, step_size=None, momentum=1.0, diversity=0.0)
    base = MIFGSM(eps=0.05, steps=5, momentum=1.0)
    first, second = (run_attack(a, curved, images, curved_labels) for a in (attack, base))
    assert torch.equal(first.adversarial, second.adversarial)


@pytest.mark.parametrize("resize", BOTH)
def test_an_image_draws_the_same_views_alone_and_in_a_batch(
    curved: Classifier, images: Tensor, curved_labels: Tensor, resize: Resize
) -> None:
    attack = DIFGSM(eps=0.05, steps=6, step_size=None, momentum=1.0, resize=resize, ratio=0.6)
    together = run_attack(attack, curved, images, curved_labels)
    for row in range(len(images)):
        only = slice(row, row + 1)
        alone = run_attack(attack, curved, images[only], curved_labels[only], ids=[row])
        assert torch.equal(alone.adversarial, together.adversarial[only])
    assert together.forwards.tolist() == [6] * 6
    assert together.backwards.tolist() == [6] * 6


@pytest.mark.parametrize("resize", BOTH)
def test_diversity_and_seed_matter(
    curved: Classifier, images: Tensor, curved_labels: Tensor, resize: Resize
) -> None:
    def adv(diversity: float, seed: int) -> Tensor:
        attack = DIFGSM(diversity=diversity, resize=resize, ratio=0.5)
        return run_attack(attack, curved, images, curved_labels, seed=seed).adversarial

    assert not torch.equal(adv(0.0, 0), adv(0.5, 0))
    assert not torch.equal(adv(0.5, 0), adv(0.5, 1))
    assert not torch.equal(adv(0.5, 0), adv(1.0, 0))


class Sizes(nn.Module):
    """A network that notes the sizes of what it is shown."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.seen: set[tuple[int, ...]] = set()

    def forward(self, images: Tensor) -> Tensor:
        self.seen.add(tuple(images.shape[2:]))
        logits: Tensor = self.net(images)
        return logits


def test_only_the_papers_view_changes_the_size(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    assert isinstance(curved.net, nn.Module)
    for resize, sizes in (("shrink", {(6, 5)}), ("enlarge", {(6, 5), (12, 10)})):
        net = Sizes(curved.net)
        run_attack(DIFGSM(resize=resize, ratio=0.5), net, images, curved_labels)  # type: ignore[arg-type]
        assert net.seen == sizes
