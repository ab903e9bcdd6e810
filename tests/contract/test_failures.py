"""Models that cannot be fooled, and models that raise."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from contract.baseline import assert_sound, state_of_network, state_of_process
from contract.victims import SHAPE, busy_network, guesses, indifferent, stubborn
from pinprick import Attack, Classifier, run_attack
from pinprick.oracle import exact_images

pytestmark = pytest.mark.plain


def test_what_cannot_be_fooled_costs_no_more_than_the_card_says(attack: Attack) -> None:
    """Passes are held to the card by ``assert_sound``, and clean images where a minimal one failed.

    A model that listens is tried with and without targets, as the ways out of loops differ.
    """
    images, labels = exact_images(3, SHAPE), torch.zeros(3, dtype=torch.long)
    facts = attack.facts()
    own: dict[str, Any] = {name: getattr(facts, name) for name in ("max_forwards", "max_backwards")}
    runs = [
        run_attack(attack, indifferent(), images, labels),
        run_attack(attack, stubborn(), images, labels, **own),
    ]
    if facts.targeted:
        runs.append(run_attack(attack, stubborn(), images, labels, targets=labels + 1))
    for result in runs:
        assert not result.success.any()
        assert not result.out_of_budget.any()
        assert_sound(attack, result, images)


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
    net, images = busy_network(), exact_images(3, SHAPE)
    labels = guesses(Classifier(net), images)
    referees = 1 + 1 + 3 + 1  # the first image, the batch, three alone, copies
    refusing = Refusing(net, referees + 1)
    before, around = state_of_network(refusing), state_of_process()
    with pytest.raises(Refused):
        run_attack(attack, refusing, images, labels)
    assert state_of_network(refusing) == before
    assert state_of_process() == around
