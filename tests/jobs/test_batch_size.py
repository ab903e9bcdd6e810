"""How many pictures go at a time when nobody says."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from pinprick import Classifier
from pinprick.attacks import CWL0, FGSM, Auto, Pinprick
from pinprick.attacks.card import Attack
from pinprick.jobs.batch_size import choose_batch_size

IMAGES = torch.rand(3, 1, 8, 8)


def network(width: int) -> nn.Module:
    """A layer of 128 * ``width`` operations per image."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, width))


@pytest.mark.parametrize(
    ("side", "given", "chosen"),
    [(28, None, None), (64, None, None), (224, None, 1), (None, None, 1), (28, 3, 3), (224, 3, 3)],
)
def test_on_a_cpu_large_pictures_go_one_at_a_time(
    side: int | None, given: int | None, chosen: int | None
) -> None:
    model = Classifier(network(2), size=None if side is None else (side, side))
    assert choose_batch_size(given, model, IMAGES, FGSM().facts()) == chosen


@pytest.mark.parametrize(
    ("attack", "width", "chosen"),
    [
        (FGSM(), 400_000, None),  # 3 passes of 51 million operations: 8 ms per image
        (Pinprick(), 4_000, None),  # 1,500 passes of half a million operations: 0.04 s
        (Pinprick(), 50_000, 64),  # of 6.4 million: 0.48 s per image, so 125
        (Pinprick(), 400_000, 8),  # of 51 million: 3.8 s per image, so 15
        (Auto(), 400_000, 4),  # 15,708 passes: 40 s per image
        (CWL0(), 4_000, 4),  # no bound
    ],
)
def test_small_pictures_go_in_batches_of_about_a_minute(
    attack: Attack, width: int, chosen: int | None
) -> None:
    model = Classifier(network(width), size=(8, 8))
    assert choose_batch_size(None, model, IMAGES, attack.facts()) == chosen


def test_limits_of_the_run_allow_larger_batches() -> None:
    model, facts = Classifier(network(400_000), size=(8, 8)), Auto().facts()
    assert choose_batch_size(None, model, IMAGES, facts, max_forwards=500) == 4
    limited = choose_batch_size(None, model, IMAGES, facts, max_forwards=500, max_backwards=500)
    assert limited == 8


def test_a_model_that_is_no_network_is_not_asked() -> None:
    def ask(images: Tensor) -> Tensor:
        pytest.fail("asked")

    assert choose_batch_size(None, Classifier(ask, size=(8, 8)), IMAGES, FGSM().facts()) is None


def test_a_network_without_counted_operations_leaves_the_choice_to_the_attack() -> None:
    facts = replace(Auto().facts(), max_forwards=None)
    assert choose_batch_size(None, Classifier(nn.Flatten(), size=(8, 8)), IMAGES, facts) is None
