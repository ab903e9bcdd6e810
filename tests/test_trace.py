"""The trace of a run: a staircase down for each image, which ends at the result."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import (
    AttackResult,
    Classifier,
    Goal,
    Problem,
    Streams,
    load_result,
    polish,
    run_attack,
    save_result,
)
from pinprick import trace as module
from pinprick.attacks import Greedy, Pinprick, SparseRS
from pinprick.oracle import exact_images, exact_linear, sure_images
from pinprick.trace import PER_STEP, Trace, Tracer


def assert_same(first: Trace | None, second: Trace | None) -> None:
    assert first is not None
    assert second is not None
    for name in ("steps", *PER_STEP):
        assert torch.equal(getattr(first, name), getattr(second, name)), name


def light(images: Tensor) -> Tensor:
    """Class 0 below a mean of one half, class 1 above; the margin is their distance, doubled."""
    mean = images.flatten(1).mean(dim=1)
    return torch.stack((1 - mean, mean), dim=1)


def make(images: Tensor, **options: Any) -> tuple[Problem, Tracer]:
    goal = Goal(torch.zeros(len(images), dtype=torch.long))
    tracer = Tracer(goal, light(images))
    rng = Streams(0, torch.arange(len(images)))
    clean = light(images)
    return Problem(light, images, goal, rng, tracer=tracer, clean_logits=clean, **options), tracer


def ended(problem: Problem, tracer: Tracer, result: Tensor | None = None) -> Trace:
    """The trace of an attack that hands back ``result``, or the clean images."""
    result = problem.images if result is None else result
    spent, changed = problem.tally, result != problem.images
    return tracer.trace(problem.goal, light(result), changed, spent.forwards, spent.backwards)


def bright(pixels: int) -> Tensor:
    """Two places and two channels, of which the first so many elements are bright."""
    return (torch.arange(4) < pixels).float().view(1, 2, 1, 2)


def test_a_step_is_a_pass_that_brought_something_by_hand() -> None:
    problem, tracer = make(torch.zeros(2, 2, 1, 2))
    first, second = problem[torch.tensor([0])], problem[torch.tensor([1])]
    for elements in (1, 1, 4, 3, 2):
        first.logits(bright(elements))
    second.logits(bright(2))
    trace = ended(problem, tracer)
    assert trace.steps.tolist() == [4, 2]
    assert trace.forwards.tolist() == [0, 1, 3, 4, 0, 1]
    assert trace.margin.tolist() == [1, 0.5, -1, -1, 1, 0]
    inf = torch.inf
    assert trace.pixels.tolist() == [inf, inf, 2, 2, inf, inf]
    assert trace.elements.tolist() == [inf, inf, 4, 3, inf, inf]  # a tie fools nobody
    assert trace.fewest_after(2).tolist() == [inf, inf]
    assert trace.fewest_after(3, "elements").tolist() == [4, inf]
    assert trace.fewest_after(4, "elements").tolist() == [3, inf]
    assert trace.margin_after(1).tolist() == [0.5, 0]


def test_copies_of_an_image_take_a_pass_each() -> None:
    problem, tracer = make(torch.zeros(2, 2, 1, 2))
    part = problem[torch.tensor([1, 0, 1, 1])]
    part.logits(torch.cat([bright(1), bright(3), bright(0), bright(2)]))
    trace = ended(problem, tracer)
    assert trace.steps.tolist() == [2, 3]
    assert trace.forwards.tolist() == [0, 1, 0, 1, 3]


def test_what_is_refused_an_answer_leaves_no_step() -> None:
    problem, tracer = make(torch.zeros(1, 2, 1, 2), max_forwards=1)
    problem.logits(bright(1))
    problem.logits(bright(4))
    assert ended(problem, tracer).forwards.tolist() == [0, 1]


def test_logits_that_are_not_finite_leave_no_step() -> None:
    images = torch.zeros(1, 2, 1, 2)
    problem, tracer = make(images)
    logits = torch.tensor([[torch.nan, 1.0]])
    changed = bright(1) != images
    row = torch.tensor([0])
    tracer.note(row, row, Goal(row), logits, changed)
    tracer.note(row, row, Goal(row), torch.tensor([[0.0, torch.inf]]), changed)
    assert ended(problem, tracer).forwards.tolist() == [0]


def test_a_result_that_was_not_asked_about_is_the_last_step() -> None:
    problem, tracer = make(torch.zeros(2, 2, 1, 2))
    problem.logits(torch.cat((bright(1), bright(4))))
    trace = ended(problem, tracer, torch.cat((bright(3), bright(0))))
    assert trace.forwards.tolist() == [0, 1, 1, 0, 1]
    assert trace.elements.tolist() == [torch.inf, torch.inf, 3, torch.inf, 4]


def test_gone_through_early_or_late_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    images, labels, model = some()
    late = run_attack(SparseRS(k=4, queries=60), model, images, labels, trace=True)
    monkeypatch.setattr(module, "_SEVERAL", 1)
    early = run_attack(SparseRS(k=4, queries=60), model, images, labels, trace=True)
    assert_same(early.trace, late.trace)


def some() -> tuple[Tensor, Tensor, Classifier]:
    model = exact_linear(4, (3, 4, 4))
    images = sure_images(model, exact_images(5, (3, 4, 4)))
    with torch.no_grad():
        return images, model(images).argmax(dim=1), model


def test_it_is_off_unless_asked_for_and_changes_nothing() -> None:
    images, labels, model = some()
    plain = run_attack(Pinprick(max_forwards=40), model, images, labels)
    result = run_attack(Pinprick(max_forwards=40), model, images, labels, trace=True)
    assert plain.trace is None
    assert torch.equal(plain.adversarial, result.adversarial)
    assert torch.equal(plain.forwards, result.forwards)
    assert torch.equal(plain.backwards, result.backwards)


def test_a_smaller_budget_does_as_the_trace_says() -> None:
    images, labels, model = some()
    whole = run_attack(Greedy(), model, images, labels, trace=True)
    assert whole.trace is not None
    for budget in (1, 3, 5, 8):
        held = run_attack(Greedy(), model, images, labels, max_forwards=budget)
        fewest = whole.trace.fewest_after(budget)
        assert torch.equal(fewest.isfinite(), held.success)
        assert torch.equal(fewest[held.success], held.needed_pixels[held.success].float())


def test_images_that_need_no_attack_have_a_single_step() -> None:
    images, labels, model = some()
    wrong = (labels + 1) % 4
    result = run_attack(Greedy(), model, images, wrong, trace=True)
    assert result.trace is not None
    assert result.trace.steps.tolist() == [1] * 5
    assert result.trace.fewest_after(0).tolist() == [0] * 5


def test_batches_and_cuts_have_their_own_steps() -> None:
    images, labels, model = some()
    attack = SparseRS(k=4, queries=60)
    whole = run_attack(attack, model, images, labels, trace=True)
    parts = run_attack(attack, model, images, labels, trace=True, batch_size=2)
    assert_same(parts.trace, whole.trace)
    back = torch.tensor([4, 0, 2])
    assert whole.trace is not None
    cut = whole[back].trace
    assert cut is not None
    ends = whole.trace.steps.cumsum(0).tolist()
    for place, row in enumerate(back.tolist()):
        own = slice(ends[row] - int(whole.trace.steps[row]), ends[row])
        alone = cut[torch.tensor([place])]
        for name in PER_STEP:
            assert torch.equal(getattr(alone, name), getattr(whole.trace, name)[own])
    mask = torch.tensor([True, False, False, False, True])
    assert_same(whole[mask].trace, whole[torch.tensor([0, 4])].trace)


def test_it_is_saved_with_the_result(tmp_path: Path) -> None:
    images, labels, model = some()
    result = run_attack(Greedy(), model, images, labels, trace=True)
    save_result(result, tmp_path / "result.safetensors")
    assert_same(load_result(tmp_path / "result.safetensors").trace, result.trace)


def test_polishing_goes_on_with_it() -> None:
    images, labels, model = some()
    result = run_attack(Greedy(), model, images, labels, trace=True)
    shorter = polish(result, model)
    assert (shorter.l0_elements < result.l0_elements).any()
    assert_ends_at(shorter)


def assert_ends_at(result: AttackResult) -> None:
    assert result.trace is not None
    most = int(result.forwards.max())
    assert torch.equal(result.trace.fewest_after(most, "elements").double(), result.needed_elements)
