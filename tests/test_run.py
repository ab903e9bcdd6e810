"""The referee measures what came of an attack, whatever the attack says of itself."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from pinprick import (
    Attack,
    AttackResult,
    BadInput,
    Card,
    Classifier,
    Failure,
    Problem,
    attack_batches,
    describe,
    run_attack,
)
from pinprick.attacks import IFGSM, Greedy
from pinprick.run import _Clock
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class Returns(Attack):
    """Whatever ``made`` makes of the problem."""

    card: ClassVar[Card] = Card(
        name="returns",
        title="Returns",
        norm="l2",
        kind="budget",
        access="gradients",
        targeted=True,
        masked=True,
        paper="",
    )

    made: Any

    def __call__(self, problem: Problem) -> Images:
        images: Images = self.made(problem)
        return images


def returning(made: Callable[[Problem], Tensor]) -> Returns:
    return Returns(made=made)


def test_what_was_measured_is_all_there(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    result = run_attack(IFGSM(eps=0.2), linear, images, labels, seed=4, batch_size=4)
    assert len(result) == 6
    assert torch.equal(result.images, images)

    @torch.no_grad()
    def logits(given: Tensor) -> Tensor:
        """In the same batches: on some CPUs the last bits depend on the batch size."""
        return torch.cat([linear(part) for part in given.split(4)])

    assert torch.equal(result.clean_logits, logits(images))
    assert torch.equal(result.adversarial_logits, logits(result.adversarial))
    rounded = (result.adversarial * 255).round() / 255
    assert torch.equal(result.rounded_logits, logits(rounded))
    assert result.ids.tolist() == [0, 1, 2, 3, 4, 5]
    assert result.batch_size.tolist() == [4, 4, 4, 4, 2, 2]
    assert result.attack == describe(IFGSM(eps=0.2))
    assert (result.model, result.seed) == ("exact linear", 4)
    assert result.seconds > 0
    assert result.peak_memory is None


def test_the_referees_own_passes_are_nobodys_cost(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(returning(lambda problem: problem.images), linear, images, labels)
    assert result.forwards.tolist() == [0] * 6
    assert result.remarks == ("not found",) * 6


def test_success_is_what_the_model_says_in_the_end(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    with torch.no_grad():
        swapped = images.flip(0)
        expected = linear(swapped).argmax(dim=1) != labels
    result = run_attack(returning(lambda problem: swapped), linear, images, labels)
    assert torch.equal(result.success, expected)
    assert 0 < expected.sum() < 6


@pytest.mark.parametrize("value", [-1e-9, 1 + 1e-9, float("nan"), float("inf")])
def test_an_attack_that_leaves_the_box_is_a_bug(
    linear: Classifier, images: Tensor, labels: Tensor, value: float
) -> None:
    def stray(problem: Problem) -> Tensor:
        adv = problem.images.clone()
        adv[3, 0, 0, 0] = value
        return adv

    with pytest.raises(RuntimeError, match=r"returns gave values outside \[0, 1\]: a bug"):
        run_attack(returning(stray), linear, images, labels)


def test_an_attack_that_breaks_the_mask_is_a_bug(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    allowed = torch.ones(6, 5, dtype=torch.bool)
    allowed[0, 0] = False
    with pytest.raises(RuntimeError, match="returns changed values it may not change: a bug"):
        run_attack(
            returning(lambda problem: problem.images * 0), linear, images, labels, allowed=allowed
        )


@given(
    values=st.lists(st.floats(0, 1, width=32), min_size=6, max_size=6),
    eps=st.floats(1e-4, 1),
    step=st.floats(1e-4, 1),
)
def test_no_image_and_no_radius_lead_out_of_the_box(
    values: list[float], eps: float, step: float
) -> None:
    images = torch.tensor(values).view(2, 1, 1, 3)
    weight = torch.tensor([[1.0, -1.0], [-1.0, 0.5], [0.25, 1.0]])
    result = run_attack(
        IFGSM(eps=eps, steps=3, step_size=step), lambda x: x.flatten(1) @ weight, images, [0, 1]
    )
    assert result.adversarial.min() >= 0
    assert result.adversarial.max() <= 1
    assert (result.linf <= eps + 1e-6).all()


def test_a_failure_has_its_reason(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    free = run_attack(Greedy(), linear, images, labels)
    assert free.failures == (None,) * 6
    short = run_attack(Greedy(), linear, images, labels, max_forwards=0)
    assert short.failures == (Failure.OUT_OF_BUDGET,) * 6
    assert short.remarks == ("out of budget",) * 6
    deaf = Classifier(lambda batch: linear(batch.detach() + 0 * batch))
    assert set(run_attack(IFGSM(), deaf, images, labels).failures) == {Failure.NO_GRADIENT}
    shut = torch.ones_like(images, dtype=torch.bool)
    shut[1] = False
    held = run_attack(Greedy(), linear, images, labels, allowed=shut)
    assert held.failures[1] is Failure.NOTHING_MAY_CHANGE
    broken = Classifier(lambda batch: linear(batch) / 0)
    assert set(run_attack(IFGSM(), broken, images, labels).failures) == {Failure.NOT_FINITE}
    partly = Classifier(lambda batch: linear(batch).index_fill(1, torch.tensor([3]), torch.nan))
    assert set(run_attack(IFGSM(), partly, images, labels).failures) == {Failure.NOT_FINITE}


def test_an_image_that_is_misclassified_or_shut_is_not_attacked(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    given, allowed = labels.clone(), torch.ones_like(images, dtype=torch.bool)
    given[0], allowed[1] = (labels[0] + 1) % 4, False
    result = run_attack(IFGSM(steps=2), linear, images, given, allowed=allowed)
    assert result.forwards.tolist() == [0, 0, 2, 2, 2, 2]
    assert torch.equal(result.adversarial[:2], images[:2])


def test_a_change_that_rounding_takes_back_does_not_survive_as_a_png() -> None:
    def brighter_than_half(batch: Tensor) -> Tensor:
        return torch.cat((batch.flatten(1) - 0.5015, 0 * batch.flatten(1)), dim=1)

    images = torch.full((1, 1, 1, 1), 128 / 255)  # 0.50196
    slightly = returning(lambda problem: problem.images - 0.001)
    result = run_attack(slightly, brighter_than_half, images, [0])
    assert result.success.tolist() == [True]
    assert result.survives_8bit.tolist() == [False]


def test_batches_come_one_at_a_time(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    attacked: list[int] = []

    def note(problem: Problem) -> Tensor:
        attacked.append(len(problem))
        return problem.images

    batches = attack_batches(returning(note), linear, images, labels, batch_size=4)
    assert attacked == []
    first = next(batches)
    assert (len(first), attacked) == (4, [4])
    assert first.trace is None  # unless asked for
    assert [len(batch) for batch in batches] == [2]


def test_the_network_is_as_it_was_between_batches(images: Tensor, labels: Tensor) -> None:
    net = nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(90, 4)).double()
    batches = attack_batches(IFGSM(), net, images, labels, batch_size=2)
    next(batches)
    assert net.training
    assert all(parameter.requires_grad for parameter in net.parameters())
    batches.close()  # type: ignore[attr-defined]
    assert net.training


def test_images_are_attacked_in_evaluation_mode(images: Tensor) -> None:
    modes: list[bool] = []

    class Telling(nn.Module):
        def forward(self, batch: Tensor) -> Tensor:
            modes.append(self.training)
            return batch.flatten(1)[:, :3]

    net = Telling()
    run_attack(IFGSM(), net, images, [0] * 6)
    assert set(modes) == {False}
    assert net.training


class Narrow(nn.Module):
    """A network that has room for so many images at a time."""

    def __init__(self, net: nn.Module, room: int) -> None:
        super().__init__()
        self.net, self.room = net, room
        self.tried: list[int] = []

    def forward(self, images: Tensor) -> Tensor:
        self.tried.append(len(images))
        if len(images) > self.room and images.requires_grad:
            raise torch.OutOfMemoryError("no room for so many")
        logits: Tensor = self.net(images)
        return logits


def net_of(model: Classifier) -> nn.Module:
    assert isinstance(model.net, nn.Module)
    return model.net


@pytest.mark.parametrize("room", [1, 2, 3, 5])
def test_a_batch_that_does_not_fit_is_started_again_in_halves(
    linear: Classifier,
    images: Tensor,
    labels: Tensor,
    room: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    emptied: list[int] = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(1))
    wide = run_attack(Greedy(), linear, images, labels)
    narrow = run_attack(Greedy(), Narrow(net_of(linear), room), images, labels)
    assert torch.equal(narrow.adversarial, wide.adversarial)
    assert torch.equal(narrow.forwards, wide.forwards)  # those of the abandoned try are dropped
    assert torch.equal(narrow.ids, wide.ids)
    expected = {1: [1, 1, 1, 1, 1, 1], 2: [1, 2, 2, 1, 2, 2], 3: [3] * 6, 5: [3] * 6}[room]
    assert narrow.batch_size.tolist() == expected
    assert len(emptied) == {1: 5, 2: 3, 3: 1, 5: 1}[room]  # of what the abandoned tries left


def test_one_image_that_does_not_fit_is_an_error(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    net = Narrow(net_of(linear), 0)
    with pytest.raises(torch.OutOfMemoryError):
        run_attack(IFGSM(), net, images, labels)
    assert net.training


def test_no_images_ask_nothing_of_the_model() -> None:
    def refuse(batch: Tensor) -> Tensor:
        raise AssertionError("asked about no images")

    result = run_attack(IFGSM(), refuse, torch.zeros(0, 3, 4, 4), [])
    assert len(result) == 0
    assert result.remarks == ()


def test_images_with_a_gradient_are_taken_as_they_are(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    wanted = run_attack(IFGSM(), linear, images, labels).adversarial
    leaf = images.clone().requires_grad_()
    result = run_attack(IFGSM(), linear, leaf, labels)
    assert torch.equal(result.adversarial, wanted)
    assert not result.adversarial.requires_grad
    assert leaf.grad is None


def test_gradients_are_there_in_every_mode(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    wanted = run_attack(IFGSM(), linear, images, labels).adversarial
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            inside = run_attack(IFGSM(), linear, images.clone(), labels.clone())
            made = images.clone(), labels.clone()
        assert torch.equal(inside.adversarial, wanted)
        assert torch.equal(run_attack(IFGSM(), linear, *made).adversarial, wanted)


def test_progress_goes_to_stderr(
    linear: Classifier, images: Tensor, labels: Tensor, capfd: pytest.CaptureFixture[str]
) -> None:
    quiet = run_attack(IFGSM(), linear, images, labels)
    assert capfd.readouterr() == ("", "")
    loud = run_attack(IFGSM(), linear, images, labels, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "attacking" in err
    assert torch.equal(loud.adversarial, quiet.adversarial)


def test_a_limit_is_each_images_own(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    free = run_attack(Greedy(), linear, images, labels)
    limit = int(free.forwards.min())
    held = run_attack(Greedy(), linear, images, labels, max_forwards=limit)
    enough: AttackResult = held[free.forwards <= limit]
    assert enough.success.all()
    assert not enough.out_of_budget.any()
    assert held.out_of_budget.sum() == (free.forwards > limit).sum()


@pytest.mark.plain
@pytest.mark.parametrize(
    ("attack", "model", "message"),
    [
        (Greedy, abs, r"with its settings, as in Greedy\(\.\.\.\)"),
        ("greedy", abs, r"such as IFGSM\(\), got 'greedy'; build\(name\) makes one"),
        (Greedy(), "resnet50", r"got 'resnet50'; load_model\(name\) gives one"),
        (Greedy(), None, r"a function of images, got None"),
    ],
)
def test_what_is_no_attack_or_no_model_is_named(
    images: Tensor, labels: Tensor, attack: Any, model: Any, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        run_attack(attack, model, images, labels)


@dataclass(frozen=True, kw_only=True)
class ByScores(Returns):
    """The same by scores alone."""

    card: ClassVar[Card] = replace(Returns.card, name="by_scores", access="scores")


@pytest.mark.parametrize("kind", [Returns, ByScores])
def test_an_attack_gets_gradients_only_where_it_declares_them(
    linear: Classifier, images: Tensor, labels: Tensor, kind: type[Returns]
) -> None:
    seen = []

    def made(problem: Problem) -> Tensor:
        seen.append(problem.gives_gradients)
        return problem.images

    run_attack(kind(made=made), linear, images, labels)
    assert seen == [kind is Returns]


def test_on_a_gpu_the_clock_waits_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time and memory of what was queued before do not count."""
    calls: list[tuple[str, torch.device]] = []

    def noting(name: str) -> Callable[[torch.device], int]:
        def note(device: torch.device) -> int:
            calls.append((name, device))
            return 77

        return note

    for name in ("synchronize", "reset_peak_memory_stats", "max_memory_allocated"):
        monkeypatch.setattr(torch.cuda, name, noting(name))
    clock = _Clock(gpu := torch.device("cuda:1"))
    clock.start()
    assert calls == [("synchronize", gpu), ("reset_peak_memory_stats", gpu)]
    seconds, memory = clock.stop()
    assert calls[2:] == [("synchronize", gpu), ("max_memory_allocated", gpu)]
    assert (seconds > 0, memory) == (True, 77)


def test_a_trace_ends_with_what_was_returned(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    adv = run_attack(Greedy(), linear, images, labels).adversarial
    result = run_attack(returning(lambda problem: adv), linear, images, labels, trace=True)
    assert result.success.all()
    assert result.trace is not None
    steps = result.trace.elements
    assert torch.equal(steps[steps.isfinite()], result.l0_elements.to(steps.dtype))


def test_warns_if_more_than_a_fifth_of_the_images_are_wrong_before(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    """Labels that do not follow the model's classes would otherwise look like an easy victory."""
    five, right = images[:5], labels[:5]
    one = torch.cat((1 - right[:1].clamp(max=1), right[1:]))
    two = torch.cat((1 - right[:2].clamp(max=1), right[2:]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_attack(Greedy(), linear, five, right).wrong.sum() == 0
        assert run_attack(Greedy(), linear, five, one).wrong.sum() == 1
    with pytest.warns(UserWarning, match=r"2 of 5 images \(40 %\) are misclassified before"):
        assert run_attack(Greedy(), linear, five, two).wrong.tolist() == [True] * 2 + [False] * 3


def test_an_image_without_an_answer_is_neither_correct_nor_wrong(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(Greedy(), linear, images, labels)
    unheard = replace(result, clean_logits=torch.full_like(result.clean_logits, torch.nan))
    assert not unheard.correct.any()
    assert not unheard.wrong.any()
