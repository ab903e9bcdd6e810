"""Models that raise in the middle of an attack."""

import pytest
from torch import Tensor, nn

from pinprick import Attack, Classifier, run_attack
from pinprick.contract.ground import ground_of
from pinprick.contract.networks import guesses
from pinprick.contract.watched_run import state_of_network, state_of_process

pytestmark = pytest.mark.plain


class Refused(Exception):
    """Raised by a model in the middle of an attack."""


class Refusing(nn.Module):
    """A network that raises when it is called for the n-th time."""

    def __init__(self, net: nn.Module, call: int) -> None:
        super().__init__()
        self.net, self.left = net, call

    def forward(self, images: Tensor) -> Tensor:
        self.left -= 1
        if not self.left:
            raise Refused
        logits: Tensor = self.net(images)
        return logits


def test_leaves_all_alone_also_when_the_model_raises(attack: Attack) -> None:
    ground = ground_of(attack)
    net, images = ground.make(), ground.images[:3]
    labels = guesses(Classifier(net), images)
    referees = 1 + 1 + 3 + 1  # the first image, the batch, three alone, copies
    refusing = Refusing(net, referees + 1)
    before, around = state_of_network(refusing), state_of_process()
    with pytest.raises(Refused):
        run_attack(attack, refusing, images, labels)
    assert state_of_network(refusing) == before
    assert state_of_process() == around
