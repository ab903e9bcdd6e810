"""Replayed passes: which sizes, when they are recorded, and what happens where they cannot be."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from recorded import FakeRecorder
from torch import Tensor

from pinprick import Classifier
from pinprick import replay as replay_module
from pinprick.replay import PATIENCE, NoRoom, ReplayedModel, padded_size


def slope(model: Classifier | ReplayedModel, images: Tensor) -> tuple[Tensor, Tensor]:
    """Logits, and the gradient of the sum of their squares."""
    images = images.detach().requires_grad_()
    logits = model(images)
    return logits.detach(), torch.autograd.grad(logits.square().sum(), images)[0]


@given(st.integers(1, 5000))
def test_a_batch_is_padded_by_at_most_a_quarter_from_32_on(count: int) -> None:
    size = padded_size(count)
    assert count <= size == padded_size(size)
    assert size < 2 * count
    assert count < 32 or size <= 1.25 * count


def test_there_are_few_sizes() -> None:
    assert len({padded_size(count) for count in range(1, 257)}) == 18


@pytest.mark.parametrize("count", [1, 3, 5, 6])
def test_replayed_passes_give_what_the_model_gives(
    linear: Classifier, images: Tensor, count: int
) -> None:
    record = FakeRecorder()
    replayed, some = ReplayedModel(linear, record), images[:count]
    for turn in range(PATIENCE + 2):
        with torch.no_grad():
            assert torch.equal(replayed(some), linear(some))
        wanted, got = slope(linear, some), slope(replayed, some)
        assert torch.equal(got[0], wanted[0])
        assert torch.equal(got[1], wanted[1])
        assert bool(record.made) == (turn >= PATIENCE)
    assert record.made == [(padded_size(count), False), (padded_size(count), True)]


def test_a_backward_pass_repeats_a_forward_pass_that_was_overwritten(
    curved: Classifier, images: Tensor
) -> None:
    replayed = ReplayedModel(curved, FakeRecorder())
    for some in (images, images[:2], images[:2]):
        for _ in range(PATIENCE + 1):
            slope(replayed, some)
    one, two = images[:2].clone().requires_grad_(), images[2:4].clone().requires_grad_()
    first, second = replayed(one), replayed(two)
    replayed(images.clone().requires_grad_())
    wanted = slope(curved, images[:2])[1], slope(curved, images[2:4])[1]
    assert torch.equal(torch.autograd.grad(second.square().sum(), two)[0], wanted[1])
    grad = torch.autograd.grad(first.square().sum(), one, retain_graph=True)[0]
    assert torch.equal(grad, wanted[0])
    assert torch.equal(torch.autograd.grad(first.square().sum(), one)[0], wanted[0])


def test_batches_are_padded_before_they_are_recorded(linear: Classifier, images: Tensor) -> None:
    asked = []

    def model(images: Tensor) -> Tensor:
        asked.append(len(images))
        return linear(images)

    replayed = ReplayedModel(model, FakeRecorder(fails=NoRoom()))
    for _ in range(PATIENCE + 1):
        assert torch.equal(replayed(images[:5]), linear(images[:5]))
    assert asked == [8] * (PATIENCE + 1)
    assert replayed.remark == "too little GPU memory to record passes of 8 images"


@pytest.mark.parametrize("fails", [RuntimeError("no\nway"), None])
def test_a_network_that_cannot_be_recorded_is_queried_directly(
    linear: Classifier, images: Tensor, fails: Exception | None
) -> None:
    replayed = ReplayedModel(linear, FakeRecorder(fails=fails, wrong=1.0))
    for _ in range(PATIENCE + 2):
        assert torch.equal(replayed(images[:5]), linear(images[:5]))
    reason = "no way" if fails else "a replayed pass differs from the model's own"
    assert replayed.remark == f"passes of this network cannot be recorded: {reason}"
    assert not replayed.recordings


def test_the_number_of_recordings_is_bounded(
    monkeypatch: pytest.MonkeyPatch, linear: Classifier, images: Tensor
) -> None:
    monkeypatch.setattr(replay_module, "MOST", 2)
    replayed = ReplayedModel(linear, FakeRecorder())
    for count in (1, 2, 4, 6):
        for _ in range(PATIENCE + 1):
            assert torch.equal(replayed(images[:count]), linear(images[:count]))
    assert len(replayed.recordings) == 2


def test_no_images_are_no_pass(linear: Classifier, images: Tensor) -> None:
    assert ReplayedModel(linear, FakeRecorder())(images[:0]).shape == (0, 4)
