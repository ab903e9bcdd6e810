"""Backward passes made at once: the same gradients and the same counts as one after the other."""

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick import Attack, Classifier, Goal, OverBudget, Problem, Streams, run_attack
from pinprick.attacks import JSMA, DeepFool, Pinprick, SparseFool
from pinprick.backward import AT_ONCE

Step = Callable[[Tensor], Tensor]


class _Watched(torch.autograd.Function):
    """The identity; notes every backward pass, however many gradients are in it."""

    passes: ClassVar[int]

    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        return images.view_as(images)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        _Watched.passes += 1
        return grad


class _ByNumPy(torch.autograd.Function):
    """A step of one's own that takes no more than one gradient at a time."""

    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        return 3 * images

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return torch.from_numpy(3 * grad.numpy())


def hooked(images: Tensor) -> Tensor:
    """A hook that looks at what it is given."""
    images = images * 1
    images.register_hook(lambda grad: grad if grad.any() else None)
    return images


def distances(images: Tensor) -> Tensor:
    """A step for which torch's own gradients are wrong when several go at once."""
    far = torch.cdist(images.flatten(1), images.new_ones(1, images[0].numel()))
    return images + far.view(-1, 1, 1, 1)


def without_rule(images: Tensor) -> Tensor:
    """A step that torch takes one at a time all the same, and warns about."""
    return images + F.pdist(images.flatten(1)).sum()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AT_ONCE, "cpu", 2**21)


def watched(model: Classifier, step: Step | None = None) -> Classifier:
    _Watched.passes = 0
    inner = step or (lambda images: images)
    return Classifier(lambda images: model(inner(_Watched.apply(images))))


def make(model: Classifier, images: Tensor, labels: Tensor, **options: Any) -> Problem:
    if "max_forwards" in options or "max_backwards" in options:
        with torch.no_grad():
            options["clean_logits"] = model(images)
    ids = torch.arange(len(images), device=images.device)
    return Problem(model, images, Goal(labels), Streams(5, ids), **options)


def gradients(problem: Problem, images: Tensor) -> Tensor:
    return torch.stack(list(problem.logits_and_gradients(images, lambda logits: logits)[1]))


def one_by_one(
    monkeypatch: pytest.MonkeyPatch, model: Classifier, images: Tensor, labels: Tensor
) -> tuple[Tensor, Problem]:
    with monkeypatch.context() as patch:
        patch.delitem(AT_ONCE, "cpu")
        problem = make(model, images, labels)
        return gradients(problem, images), problem


def test_a_processor_takes_them_one_after_the_other(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    gradients(make(watched(curved), images, curved_labels), images)
    assert _Watched.passes == 4


def test_a_gradient_of_one_loss_needs_no_grad_outputs(
    monkeypatch: pytest.MonkeyPatch, curved: Classifier, images: Tensor, labels: Tensor
) -> None:
    """Their first use imports sympy, which takes seconds."""
    calls, grad = [], torch.autograd.grad

    def note(*given: Any, **options: Any) -> Any:
        calls.append((len(given), *options))
        return grad(*given, **options)

    monkeypatch.setattr(torch.autograd, "grad", note)
    problem = make(curved, images, labels)
    gradients(problem, images)
    problem.gradient(images, problem.goal.margin)
    assert set(calls) == {(2, "retain_graph"), (2,)}


@pytest.mark.usefixtures("at_once")
def test_all_at_once_they_are_the_same(
    monkeypatch: pytest.MonkeyPatch, curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    wanted, alone = one_by_one(monkeypatch, curved, images, curved_labels)
    together = make(watched(curved), images, curved_labels)
    torch.testing.assert_close(gradients(together, images), wanted)
    assert _Watched.passes == 2  # the second held one against the first
    torch.testing.assert_close(gradients(together, images), wanted)
    assert _Watched.passes == 3
    assert together.tally.forwards.tolist() == [2] * 6
    assert together.tally.backwards.tolist() == [8] * 6
    assert together.tally.flat.tolist() == alone.tally.flat.tolist() == [0] * 6


@pytest.mark.parametrize(("values", "wanted"), [(1, 4), (2, 2), (3, 2), (4, 1)])
def test_as_many_go_at_once_as_fit(
    monkeypatch: pytest.MonkeyPatch,
    curved: Classifier,
    images: Tensor,
    curved_labels: Tensor,
    values: int,
    wanted: int,
) -> None:
    monkeypatch.setitem(AT_ONCE, "cpu", values * images.numel() + 1)
    problem = make(watched(curved), images, curved_labels)
    gradients(problem, images)  # to hold one against another
    _Watched.passes = 0
    gradients(problem, images)
    assert _Watched.passes == wanted
    assert problem.tally.backwards.tolist() == [8] * 6


@pytest.mark.usefixtures("at_once")
def test_a_pass_counts_when_its_gradient_is_asked_for(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    problem = make(curved, images, curved_labels)
    part = problem[torch.tensor([5, 0, 5])]
    _, slopes = part.logits_and_gradients(part.images, lambda logits: logits)
    assert problem.tally.backwards.tolist() == [0] * 6
    next(slopes)
    assert problem.tally.backwards.tolist() == [1, 0, 0, 0, 0, 2]
    problem.gradient(images, problem.goal.margin)
    next(slopes)
    assert problem.tally.backwards.tolist() == [3, 1, 1, 1, 1, 5]


@pytest.mark.usefixtures("at_once")
def test_gradients_that_are_zero_are_noted(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels)
    weight = torch.tensor([1.0, 0.0, 2.0, 0.0], dtype=images.dtype)
    _, slopes = problem.logits_and_gradients(images, lambda logits: logits * weight)
    assert [bool(slope.any()) for slope in slopes] == [True, False, True, False]
    assert problem.tally.flat.tolist() == [2] * 6


@pytest.mark.usefixtures("at_once")
def test_a_row_that_is_refused_has_no_gradient_and_no_pass(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(watched(linear), images, labels, max_forwards=1)
    first = problem[torch.tensor([0, 4])]
    first.logits(first.images)
    slopes = gradients(problem, images)
    assert _Watched.passes == 2
    answered = torch.tensor([False, True, True, True, False, True])
    assert torch.equal(slopes.flatten(2).any(dim=2), answered.expand(4, 6))
    assert problem.tally.backwards.tolist() == [0, 4, 4, 4, 0, 4]


@pytest.mark.usefixtures("at_once")
def test_with_a_limit_on_them_they_go_one_after_the_other(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(watched(linear), images, labels, max_backwards=2)
    assert gradients(problem, images).flatten(1).any(dim=1).tolist() == [True, True, False, False]
    assert _Watched.passes == 4
    assert problem.tally.backwards.tolist() == [2] * 6
    assert problem.tally.out_of_budget.all()
    assert problem.tally.flat.tolist() == [2] * 6
    strict = make(linear, images, labels, max_backwards=2, strict=True)
    with pytest.raises(OverBudget, match="more than its 2 backward passes"):
        gradients(strict, images)
    assert strict.tally.backwards.tolist() == [2] * 6


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("step", [_ByNumPy.apply, hooked, distances])
def test_a_network_that_does_not_allow_it_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
    curved: Classifier,
    images: Tensor,
    curved_labels: Tensor,
    step: Step,
) -> None:
    wanted, _ = one_by_one(monkeypatch, watched(curved, step), images, curved_labels)
    problem = make(watched(curved, step), images, curved_labels)
    assert torch.equal(gradients(problem, images), wanted)
    assert problem.tally.backwards.tolist() == [4] * 6
    assert problem.tally.flat.tolist() == [0] * 6
    _Watched.passes = 0
    part = problem[torch.tensor([3, 1])]
    gradients(part, part.images)
    assert _Watched.passes == 4  # not tried again, in a cut neither
    assert problem.tally.backwards.tolist() == [4, 8, 4, 8, 4, 4]


@pytest.mark.usefixtures("at_once")
def test_an_error_of_the_network_is_still_raised(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    def broken(images: Tensor) -> Tensor:
        images = images.exp()
        return images.mul_(2) if images.requires_grad else images * 2

    problem = make(watched(curved, broken), images, curved_labels)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gradients(problem, images)
    assert problem.tally.backwards.tolist() == [0] * 6


@pytest.mark.usefixtures("at_once")
def test_what_torch_says_of_its_speed_reaches_nobody(
    monkeypatch: pytest.MonkeyPatch, curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    wanted, _ = one_by_one(monkeypatch, watched(curved, without_rule), images, curved_labels)
    problem = make(watched(curved, without_rule), images, curved_labels)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.testing.assert_close(gradients(problem, images), wanted)
    assert _Watched.passes == 2
    assert not seen


@pytest.mark.parametrize(
    "attack",
    [
        DeepFool(),
        DeepFool(norm="linf"),
        SparseFool(),
        JSMA(output="logits"),
        pytest.param(Pinprick(), marks=pytest.mark.slow),
    ],
    ids=lambda attack: attack.card.name,
)
def test_attacks_find_the_same(
    monkeypatch: pytest.MonkeyPatch,
    curved: Classifier,
    images: Tensor,
    curved_labels: Tensor,
    attack: Attack,
) -> None:
    alone = run_attack(attack, watched(curved), images, curved_labels)
    before = _Watched.passes
    monkeypatch.setitem(AT_ONCE, "cpu", 2**21)
    together = run_attack(attack, watched(curved), images, curved_labels)
    assert _Watched.passes < before
    assert torch.equal(together.success, alone.success)
    assert torch.equal(together.forwards, alone.forwards)
    assert torch.equal(together.backwards, alone.backwards)
    torch.testing.assert_close(together.adversarial, alone.adversarial)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("step", [None, without_rule, hooked])
def test_a_gpu_gives_the_same(
    monkeypatch: pytest.MonkeyPatch, curved: Classifier, images: Tensor, step: Step | None
) -> None:
    assert isinstance(curved.net, torch.nn.Module)
    curved.net.cuda()
    images, labels = images.cuda(), torch.zeros(len(images), dtype=torch.long, device="cuda")
    found = make(watched(curved, step), images, labels)
    slopes = gradients(found, images)
    assert _Watched.passes == (4 if step is hooked else 2)
    monkeypatch.delitem(AT_ONCE, "cuda")
    alone = make(watched(curved, step), images, labels)
    torch.testing.assert_close(slopes, gradients(alone, images))
    assert torch.equal(found.tally.backwards, alone.tally.backwards)
