"""Watching a run: every candidate is seen, the result stays the same, and a stop ends it."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from pinprick import attack_batches, run_attack
from pinprick.attacks import Greedy, Pinprick, SparseRS
from pinprick.attacks.card import Attack
from pinprick.goal import Goal
from pinprick.oracle import exact_images, exact_linear, sure_images
from pinprick.watch import Watch

SHAPE = (3, 6, 5)


class Counting(Watch):
    """Counts candidates per image, and stops after so many passes."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.seen = [0] * 6
        self.stop_after = stop_after
        self.spent = torch.zeros(6)

    def see(
        self,
        rows: Tensor,
        images: Tensor,
        goal: Goal,
        logits: Tensor,
        forwards: Tensor,
        backwards: Tensor,
    ) -> None:
        assert len(rows) == len(images) == len(goal.labels) == len(logits)
        for row in rows.tolist():
            self.seen[row] += 1
        self.spent = forwards + 0
        if self.stop_after is not None and max(self.seen) >= self.stop_after:
            self.stopped = True


@pytest.fixture
def images() -> Tensor:
    return sure_images(exact_linear(4, SHAPE), exact_images(6, SHAPE))


@pytest.fixture
def labels(images: Tensor) -> Tensor:
    return exact_linear(4, SHAPE)(images).argmax(dim=1)


@pytest.mark.parametrize("attack", [Greedy(), Pinprick(), SparseRS(queries=50)])
def test_a_watched_run_gives_the_same_result_and_every_pass_is_seen(
    attack: Attack, images: Tensor, labels: Tensor
) -> None:
    model, watch = exact_linear(4, SHAPE), Counting()
    (watched,) = attack_batches(attack, model, images, labels, watch=watch)
    plain = run_attack(attack, model, images, labels)
    assert torch.equal(watched.adversarial, plain.adversarial)
    assert watch.seen == plain.forwards.tolist() == watch.spent.tolist()


def test_a_stopped_run_keeps_the_best_so_far(images: Tensor, labels: Tensor) -> None:
    model = exact_linear(4, SHAPE)
    (stopped,) = attack_batches(Pinprick(), model, images, labels, watch=Counting(stop_after=30))
    limited = run_attack(Pinprick(), model, images, labels, max_forwards=30)
    assert stopped.out_of_time.all()
    assert torch.equal(stopped.adversarial, limited.adversarial)
    assert torch.equal(stopped.forwards, limited.forwards)


def test_batches_after_a_stop_stay_clean_and_none_is_saved(
    images: Tensor, labels: Tensor, tmp_path: Path
) -> None:
    model, watch = exact_linear(4, SHAPE), Counting(stop_after=10)
    parts = list(
        attack_batches(
            Pinprick(), model, images, labels, batch_size=3, folder=tmp_path, watch=watch
        )
    )
    assert torch.equal(parts[1].adversarial, images[3:])
    assert parts[1].forwards.tolist() == [0, 0, 0]
    whole = list(attack_batches(Pinprick(), model, images, labels, batch_size=3, folder=tmp_path))
    assert not any(part.out_of_time.any() for part in whole)
