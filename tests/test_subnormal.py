"""Subnormal numbers are zero while a model is asked, in every thread, and never afterwards."""

import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pinprick import Classifier, attack_batches, gradcam, guided_gradients, run_attack, subnormal
from pinprick.attacks import IFGSM
from pinprick.subnormal import flushed, is_flushing


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    before, threads = is_flushing(), torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    assert is_flushing() == before
    torch.set_flush_denormal(False)


def share_that_stays() -> float:
    """Of subnormal numbers, when torch multiplies them with one in all its threads."""
    smallest = torch.ones(2**18, dtype=torch.int32).view(torch.float32)
    return (smallest * 1.0).view(torch.int32).float().mean().item()


def in_a_fresh_thread(function: Callable[[], None]) -> None:
    """Call ``function`` where torch has started no threads to share its work with yet."""
    raised: list[BaseException] = []

    def call() -> None:
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


@pytest.mark.parametrize("before", [False, True])
def test_is_on_for_a_while_and_then_as_it_was(before: bool) -> None:
    torch.set_flush_denormal(before)
    with flushed():
        assert is_flushing()
        with flushed():
            assert is_flushing()
        assert is_flushing()
    assert is_flushing() == before
    with pytest.raises(KeyError), flushed():
        raise KeyError
    assert is_flushing() == before
    torch.set_flush_denormal(False)


@pytest.mark.parametrize("started", [False, True])
def test_all_threads_of_torch_are_set_and_put_back(started: bool) -> None:
    def look() -> None:
        torch.set_num_threads(2)
        if started:
            assert share_that_stays() == 1
        with flushed():
            assert share_that_stays() == 0
        assert share_that_stays() == 1

    in_a_fresh_thread(look)


def test_each_thread_gets_back_what_was_its_own() -> None:
    def look() -> None:
        torch.set_num_threads(2)
        share_that_stays()  # starts the other thread
        torch.set_flush_denormal(True)
        with flushed():
            assert share_that_stays() == 0
        assert share_that_stays() == 0.5

    in_a_fresh_thread(look)


def test_threads_that_are_started_meanwhile_are_put_back_too() -> None:
    def look() -> None:
        torch.set_num_threads(1)
        with flushed():
            torch.set_num_threads(2)
            assert share_that_stays() == 0
        assert share_that_stays() == 1

    in_a_fresh_thread(look)


def test_without_openmp_no_thread_is_left_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_name: str) -> Any:
        raise OSError

    def look() -> None:
        torch.set_num_threads(2)
        with flushed():
            assert is_flushing()
            share_that_stays()
        assert share_that_stays() == 1

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    in_a_fresh_thread(look)


def test_a_forked_process_does_not_wait_for_threads_that_it_has_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_name: str) -> Any:
        raise AssertionError("OpenMP was asked")

    monkeypatch.setattr(ctypes, "CDLL", fail)
    monkeypatch.setattr(subnormal, "_PROCESS", subnormal._PROCESS + 1)
    torch.set_num_threads(2)
    with flushed():
        assert is_flushing()
    assert not is_flushing()


class _Fade(torch.autograd.Function):
    """The identity, with a gradient that is subnormal."""

    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        return images.view_as(images)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad.sign() * 1e-20 * 1e-20


class Sure(nn.Module):
    """A network so sure of itself that its gradients are subnormal; notes the state it is in."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Conv2d(1, 2, 3, padding=1)
        self.flushing: list[bool] = []

    def forward(self, images: Tensor) -> Tensor:
        self.flushing.append(is_flushing())
        logits: Tensor = self.features(_Fade.apply(images)).relu().mean(dim=(2, 3))
        return logits


def some_images() -> Tensor:
    return torch.rand(4, 1, 6, 6, generator=torch.Generator().manual_seed(0))


def test_what_is_subnormal_in_a_gradient_is_zero_to_every_attack() -> None:
    net, images = Sure(), some_images()
    labels = net(images).argmax(dim=1)
    net.flushing.clear()
    result = run_attack(IFGSM(steps=2), net, images, labels)
    assert torch.equal(result.adversarial, images)
    assert set(result.remarks) == {"the model's gradient was zero or not finite"}
    assert net.flushing
    assert all(net.flushing)
    assert not is_flushing()


def test_the_answers_of_a_model_are_the_same_as_ever() -> None:
    net, images = Sure(), some_images()
    with torch.no_grad():
        logits = net(images)
        with Classifier(net).frozen():
            assert torch.equal(net(images), logits)
    result = run_attack(IFGSM(steps=1), net, images, logits.argmax(dim=1))
    assert torch.equal(result.clean_logits, logits)


def test_between_two_batches_all_is_as_the_caller_has_it() -> None:
    net, images = Sure(), some_images()
    labels = net(images).argmax(dim=1)
    batches = attack_batches(IFGSM(steps=1), net, images, labels, batch_size=1)
    next(batches)
    assert not is_flushing()
    del batches
    assert not is_flushing()


def test_a_model_that_raises_leaves_nothing_behind() -> None:
    def refuse(_images: Tensor) -> Tensor:
        assert is_flushing()
        raise KeyError

    with pytest.raises(KeyError):
        run_attack(IFGSM(), Classifier(refuse), some_images(), [0, 0, 0, 0])
    assert not is_flushing()


@pytest.mark.parametrize("explain", [gradcam, guided_gradients], ids=lambda f: f.__name__)
def test_explanations_are_made_in_the_same_state(explain: Callable[..., Any]) -> None:
    net = Sure()
    explain(net, some_images())
    assert net.flushing
    assert all(net.flushing)
    assert not is_flushing()


def test_a_model_that_gives_no_gradients_is_asked_as_it_is() -> None:
    """Probabilities of other programs may be subnormal, and their logarithms are taken."""
    with Classifier(Sure(), access="scores").frozen():
        assert not is_flushing()
