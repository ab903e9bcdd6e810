"""A limit on the time of an attack: what was best until then is kept, and the result says so."""

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from pinprick import (
    AttackResult,
    BadInput,
    Classifier,
    attack_batches,
    load_result,
    run_attack,
    save_result,
)
from pinprick.attacks import PGD, Auto, Greedy, Pinprick, SparseRS
from pinprick.intake import take_in
from pinprick.oracle import exact_images, exact_linear, sure_images
from pinprick.report.row import make_rows
from pinprick.run import TimeLeft

SHAPE = (3, 6, 5)


class Ticking(Classifier):
    """A model whose every call takes one second of a clock that nothing else moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(exact_linear(4, SHAPE).net, name="ticking")
        self.now = 0
        monkeypatch.setattr(time, "perf_counter", lambda: float(self.now))

    def __call__(self, images: Tensor) -> Tensor:
        self.now += 1
        return super().__call__(images)


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> Ticking:
    return Ticking(monkeypatch)


@pytest.fixture
def images(ticking: Ticking) -> Tensor:
    return sure_images(ticking, exact_images(6, SHAPE))


@pytest.fixture
def labels(ticking: Ticking, images: Tensor) -> Tensor:
    with torch.no_grad():
        return ticking(images).argmax(dim=1)


def test_an_attack_ends_when_its_time_is_over(
    ticking: Ticking, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(Pinprick(), ticking, images, labels, max_seconds=30.0)
    assert (result.forwards == 30).all()
    assert result.seconds == 30
    assert result.out_of_time.all()
    assert not result.out_of_budget.any()
    held = run_attack(Pinprick(), ticking, images, labels, max_forwards=30)
    assert torch.equal(result.adversarial, held.adversarial)


def test_several_calls_share_the_time_that_is_left(
    ticking: Ticking, images: Tensor, labels: Tensor
) -> None:
    left = TimeLeft(40.0)
    found: list[AttackResult] = []
    for part in (slice(0, 2), slice(2, 4), slice(4, 6)):
        found += attack_batches(
            Pinprick(max_forwards=30), ticking, images[part], labels[part], max_seconds=left
        )
    assert [result.seconds for result in found] == [30, 10, 0]
    assert [result.out_of_time.all().item() for result in found] == [False, True, True]
    assert [result.attack["limits"]["max_seconds"] for result in found] == [40, 10, 0]
    assert left.seconds == 0
    unbound = TimeLeft(None)
    list(attack_batches(Greedy(), ticking, images, labels, max_seconds=unbound))
    assert unbound.seconds is None


def test_what_failed_says_that_it_ran_out_of_time(
    ticking: Ticking, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(Greedy(), ticking, images, labels, max_seconds=1.0)
    assert not result.success.any()
    assert result.remarks == ("out of time",) * 6
    assert {row.remark for row in make_rows(result, ticking)} == {"out of time"}
    assert all(row.out_of_time for row in make_rows(result, ticking))
    assert torch.equal(result.adversarial, images)


def test_what_was_done_in_time_is_as_without_a_limit(
    ticking: Ticking, images: Tensor, labels: Tensor
) -> None:
    free = run_attack(Greedy(), ticking, images, labels)
    limit = int(free.forwards.sort().values[2])
    held = run_attack(Greedy(), ticking, images, labels, max_seconds=float(limit))
    done = free.forwards <= limit
    assert torch.equal(held.out_of_time, ~done)
    assert torch.equal(held.adversarial[done], free.adversarial[done])
    assert torch.equal(held.forwards, free.forwards.clamp(max=limit))


def test_batches_that_were_not_begun_are_not_attacked(
    ticking: Ticking, images: Tensor, labels: Tensor
) -> None:
    wrong = labels.clone()
    wrong[5] = (labels[5] + 1) % 4  # needs no attack, so no time either
    attack = PGD(steps=4, eps=0.01)
    result = run_attack(attack, ticking, images, wrong, batch_size=2, max_seconds=6.0)
    assert result.forwards.tolist() == [4, 4, 2, 2, 0, 0]
    assert result.out_of_time.tolist() == [False, False, True, True, True, False]
    assert torch.equal(result.adversarial[4], images[4])
    assert not torch.equal(result.adversarial[3], images[3])
    assert (result.remarks[4], result.remarks[5]) == ("out of time", "")
    assert result.skipped.tolist() == [False] * 5 + [True]


def test_the_time_of_the_caller_and_of_the_referee_is_not_counted(
    ticking: Ticking, images: Tensor, labels: Tensor
) -> None:
    attack = PGD(steps=4, eps=0.01)
    seconds = 0.0
    for result in attack_batches(attack, ticking, images, labels, batch_size=2, max_seconds=12.0):
        ticking.now += 1000  # drawing figures
        assert not result.out_of_time.any()
        seconds += result.seconds
    assert seconds == 12


def test_no_time_at_all_is_no_attack(ticking: Ticking, images: Tensor, labels: Tensor) -> None:
    for attack in (Pinprick(), SparseRS(), Auto(), PGD()):
        result = run_attack(attack, ticking, images, labels, max_seconds=0.0)
        assert torch.equal(result.adversarial, images)
        assert (result.forwards == 0).all()
        assert result.out_of_time.all()
        assert result.remarks == ("out of time",) * 6


def test_the_limits_are_kept_with_the_result(
    ticking: Ticking, images: Tensor, labels: Tensor
) -> None:
    free = run_attack(Greedy(), ticking, images, labels)
    assert "limits" not in free.attack
    limits: dict[str, Any] = {"max_forwards": 9, "max_seconds": 2.5}
    held = run_attack(Greedy(), ticking, images, labels, **limits)
    assert held.attack["limits"] == limits


def test_a_result_from_before_there_was_a_limit_can_be_read(
    ticking: Ticking, images: Tensor, labels: Tensor, tmp_path: Path
) -> None:
    result = run_attack(Greedy(), ticking, images, labels, max_seconds=2.0)
    save_result(result, tmp_path / "new.safetensors")
    assert torch.equal(load_result(tmp_path / "new.safetensors").out_of_time, result.out_of_time)
    with safe_open(tmp_path / "new.safetensors", framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    del tensors["out_of_time"]
    save_file(tensors, tmp_path / "old.safetensors", metadata=metadata)
    assert not load_result(tmp_path / "old.safetensors").out_of_time.any()


@pytest.mark.parametrize("value", [-1, float("nan"), "3", True])
def test_a_limit_is_a_number_of_seconds(images: Tensor, value: Any) -> None:
    with pytest.raises(BadInput, match="max_seconds must be a number of seconds of at least 0"):
        take_in(images, [0] * 6, None, None, None, None, None, None, max_seconds=value)


def test_whole_seconds_are_seconds_too(images: Tensor) -> None:
    task = take_in(images, [0] * 6, None, None, None, None, None, None, max_seconds=3)
    assert task.max_seconds == 3
