"""What an attack is given: it cuts, it counts, and it keeps to the limits."""

import time
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import BadInput, Classifier, Goal, NoAnswer, OverBudget, Problem, Streams


def make(model: Classifier, images: Tensor, labels: Tensor, **options: Any) -> Problem:
    if {"max_forwards", "max_backwards", "max_passes"} & options.keys():
        with torch.no_grad():
            options["clean_logits"] = model(images)
    ids = torch.arange(len(images))
    return Problem(model, images, Goal(labels), Streams(5, ids), **options)


def test_every_pass_of_every_image_is_counted(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels)
    problem.logits(images)
    problem.gradient(images, problem.goal.margin)
    assert problem.tally.forwards.tolist() == [2] * 6
    assert problem.tally.backwards.tolist() == [1] * 6


def test_a_cut_keeps_what_belongs_to_an_image(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    allowed = images > 0.5
    problem = make(linear, images, labels, allowed=allowed)
    mask = torch.tensor([False, True, False, False, True, False])
    for rows in (mask, torch.tensor([1, 4])):
        part = problem[rows]
        assert len(part) == 2
        assert torch.equal(part.images, images[[1, 4]])
        assert torch.equal(part.goal.labels, labels[[1, 4]])
        assert part.allowed is not None
        assert torch.equal(part.allowed, allowed[[1, 4]])
        whole = problem.rng.uniform(3, step=0, use="test")
        assert torch.equal(part.rng.uniform(3, step=0, use="test"), whole[[1, 4]])
        part.logits(part.images)
    assert problem.tally.forwards.tolist() == [0, 2, 0, 0, 2, 0]


def test_a_cut_of_a_cut_counts_for_the_same_image(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels)
    part = problem[torch.tensor([5, 3, 1])][torch.tensor([False, True, True])]
    part.gradient(part.images, part.goal.margin)
    assert problem.tally.backwards.tolist() == [0, 1, 0, 1, 0, 0]


def test_copies_of_an_image_each_count(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    problem = make(linear, images, labels)
    part = problem[torch.tensor([2, 2, 0, 2])]
    part.gradient(part.images, part.goal.margin)
    assert problem.tally.forwards.tolist() == [1, 0, 3, 0, 0, 0]
    assert problem.tally.backwards.tolist() == [1, 0, 3, 0, 0, 0]


def test_a_row_out_of_budget_gets_logits_that_meet_no_goal(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels, max_forwards=2)
    spent = problem[torch.tensor([0, 0, 3])]
    spent.logits(spent.images)
    dark = images * 0
    with torch.no_grad():
        true = linear(dark)
    answers = problem.logits(dark)
    assert answers[0].isnan().all()
    assert not problem.goal.met(answers)[0]
    assert torch.equal(answers[1:], true[1:])
    assert problem.tally.forwards.tolist() == [2, 1, 1, 2, 1, 1]
    assert problem.tally.out_of_budget.tolist() == [True, False, False, False, False, False]
    assert problem[torch.tensor([3, 0, 0])].refused.tolist() == [False, True, True]
    assert problem[torch.tensor([3, 0, 1])].forwards.tolist() == [2, 2, 1]


def test_a_row_out_of_budget_has_no_gradient(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels, max_forwards=1)
    first = problem[torch.tensor([0, 4])]
    first.logits(first.images)
    grad = problem.gradient(images, lambda logits: logits[:, 0])
    assert (grad.flatten(1) == 0).all(dim=1).tolist() == [True, False, False, False, True, False]
    assert problem.tally.backwards.tolist() == [0, 1, 1, 1, 0, 1]


def test_backward_passes_have_a_limit_of_their_own(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels, max_backwards=1)
    part = problem[torch.tensor([1])]
    part.gradient(part.images, part.goal.margin)
    grad = problem.gradient(images, problem.goal.margin)
    assert (grad[1] == 0).all()
    assert (grad[0] != 0).any()
    assert problem.tally.forwards.tolist() == [1, 2, 1, 1, 1, 1]
    assert problem.tally.backwards.tolist() == [1] * 6
    assert problem.tally.out_of_budget.tolist() == [False, True, False, False, False, False]


def test_forward_and_backward_passes_have_a_limit_together(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels, max_passes=3)
    part = problem[torch.tensor([1])]
    part.gradient(part.images, part.goal.margin)
    grad = problem.gradient(images, problem.goal.margin)
    assert (grad[1] == 0).all()
    assert (grad[0] != 0).any()
    assert problem.logits(images)[1].isnan().all()
    assert problem.tally.forwards.tolist() == [2] * 6
    assert problem.tally.backwards.tolist() == [1] * 6
    assert problem.tally.out_of_budget.tolist() == [False, True, False, False, False, False]


def test_of_several_copies_the_first_are_within_the_limit(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels, max_forwards=2)
    part = problem[torch.tensor([3, 1, 3, 3])]
    dark = part.images * 0
    with torch.no_grad():
        true = linear(dark)
    answers = part.logits(dark)
    assert torch.equal(answers[:3], true[:3])
    assert answers[3].isnan().all()
    assert problem.tally.forwards.tolist() == [0, 1, 0, 2, 0, 0]


def test_the_model_never_sees_a_row_out_of_budget(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    seen = []

    def watch(batch: Tensor) -> Tensor:
        seen.append(len(batch))
        return linear(batch)

    problem = make(Classifier(watch), images, labels, max_forwards=1)
    seen.clear()
    for _ in range(2):
        problem.logits(images)
        problem.gradient(images, problem.goal.margin)
    assert seen == [6]


def test_logits_of_lower_precision_than_the_images_can_run_out_too(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    single = Classifier(lambda batch: linear(batch).float())
    problem = make(single, images, labels, max_forwards=1)
    part = problem[torch.tensor([0])]
    part.logits(part.images)
    logits, grad = problem.logits_and_gradient(images, problem.goal.margin)
    assert logits.dtype == torch.float32
    assert grad.dtype == torch.float64


def test_strictly_the_limit_raises(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    problem = make(linear, images, labels, max_forwards=2, max_backwards=1, strict=True)
    problem.gradient(images, problem.goal.margin)
    with pytest.raises(OverBudget, match="more than its 1 backward passes"):
        problem.gradient(images, problem.goal.margin)
    with pytest.raises(OverBudget, match="more than its 2 forward passes"):
        problem.logits(images)
    problem = make(linear, images, labels, max_passes=2, strict=True)
    problem.gradient(images, problem.goal.margin)
    with pytest.raises(OverBudget, match="more than its 2 passes"):
        problem.logits(images)


def test_a_gradient_is_each_images_own(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    problem = make(linear, images, labels)
    together = problem.gradient(images, problem.goal.cross_entropy)
    part = problem[torch.tensor([2])]
    alone = part.gradient(images[2:3], part.goal.cross_entropy)
    torch.testing.assert_close(together[2:3], alone)


def test_what_is_not_finite_in_a_gradient_is_zero_and_noted(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    def steep(batch: Tensor) -> Tensor:
        return linear((batch - batch.detach()[:, :1, :1, :1]).sqrt())  # no slope at one place

    problem = make(Classifier(steep), images, labels)
    grad = problem.gradient(images, problem.goal.margin)
    assert grad.isfinite().all()
    constant = make(Classifier(lambda batch: linear(0 * batch)), images, labels)
    constant.gradient(images, constant.goal.margin)
    assert constant.tally.flat.tolist() == [1] * 6


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_each_value_of_a_gradient_that_is_not_finite_becomes_zero(
    linear: Classifier, images: Tensor, labels: Tensor, value: float
) -> None:
    bad = images > 0.5

    def spoilt(batch: Tensor) -> Tensor:
        inner = batch * 1
        inner.register_hook(lambda grad: grad.masked_fill(bad, value))
        return linear(inner)

    whole = make(linear, images, labels)
    wanted = whole.gradient(images, whole.goal.margin).masked_fill(bad, 0)
    problem = make(Classifier(spoilt), images, labels)
    assert torch.equal(problem.gradient(images, problem.goal.margin), wanted)


def test_logits_without_a_gradient_leave_no_graph(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels)
    assert not problem.logits(images).requires_grad
    logits, grad = problem.logits_and_gradient(images, problem.goal.margin)
    assert not logits.requires_grad
    assert not grad.requires_grad


def test_gradients_are_there_also_where_they_are_switched_off(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels)
    wanted = problem.gradient(images, problem.goal.margin)
    with torch.no_grad():
        assert torch.equal(problem.gradient(images, problem.goal.margin), wanted)


def test_a_model_without_gradients_is_named_as_such(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(Classifier(lambda batch: linear(batch).detach()), images, labels)
    with pytest.raises(BadInput, match="passes no gradient back"):
        problem.gradient(images, problem.goal.margin)


def test_an_attack_by_scores_gets_no_gradient(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels, gradients=False)
    assert not problem.logits(images.clone().requires_grad_()).requires_grad
    with pytest.raises(BadInput, match="passes no gradient back"):
        problem.gradient(images, problem.goal.margin)


def test_one_candidate_for_each_image(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    problem = make(linear, images, labels)
    with pytest.raises(AssertionError, match="cut the problem first"):
        problem.logits(images[:2])


def test_several_gradients_share_one_forward_pass_and_come_as_they_are_asked_for(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    problem = make(curved, images, curved_labels)
    part = problem[torch.tensor([5, 0, 2])]
    logits, gradients = part.logits_and_gradients(
        part.images, lambda logits: logits[:, :3].square()
    )
    assert problem.tally.forwards.tolist() == [1, 0, 1, 0, 0, 1]
    assert problem.tally.backwards.tolist() == [0] * 6
    first = next(gradients)
    assert problem.tally.backwards.tolist() == [1, 0, 1, 0, 0, 1]
    both = [first, next(gradients)]
    assert problem.tally.backwards.tolist() == [2, 0, 2, 0, 0, 2]
    third = next(gradients)
    assert next(gradients, None) is None
    assert problem.tally.forwards.tolist() == [1, 0, 1, 0, 0, 1]
    assert problem.tally.backwards.tolist() == [3, 0, 3, 0, 0, 3]
    assert torch.equal(logits, part.logits(part.images))
    alone = (
        part.gradient(part.images, lambda logits: logits[:, 0].square()),
        part.gradient(part.images, lambda logits: logits[:, 1].square()),
        part.gradient(part.images, lambda logits: logits[:, 2].square()),
    )
    for grad, wanted in zip([*both, third], alone, strict=True):
        torch.testing.assert_close(grad, wanted)
        assert not grad.requires_grad


def test_of_several_gradients_those_over_the_limit_are_zero(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels, max_backwards=2)
    _, gradients = problem.logits_and_gradients(images, lambda logits: logits)
    assert [bool((grad != 0).any()) for grad in gradients] == [True, True, False, False]
    assert problem.tally.backwards.tolist() == [2] * 6
    assert problem.tally.out_of_budget.all()
    assert problem.tally.flat.tolist() == [2] * 6


class Failing:
    """A remote model that gives no answer on images with a bright corner."""

    def __init__(self, linear: Classifier) -> None:
        self.linear, self.seen = linear, 0
        self.sent = True

    def __call__(self, images: Tensor) -> Tensor:
        self.seen += len(images)
        logits = self.linear(images)
        bad = (images[:, 0, 0, 0] > 0.9).nonzero().flatten().tolist()
        if bad:
            logits[bad] = torch.nan
            raise NoAnswer("no answer", logits=logits, reasons={row: f"why {row}" for row in bad})
        return logits


def test_an_image_that_the_model_fails_on_is_not_asked_about_again(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    model = Failing(linear)
    with torch.no_grad():
        clean = linear(images)
    problem = make(model, images, labels, clean_logits=clean)  # type: ignore[arg-type]
    assert problem.may_refuse
    part = problem[torch.tensor([2, 0, 2, 2])]
    tried = part.images * 0.5
    tried[2, 0, 0, 0] = 1.0
    logits = part.logits(tried)
    answered = logits.isfinite().all(dim=1)
    assert answered.tolist() == [True, True, False, True]
    with torch.no_grad():
        assert torch.equal(logits[answered], linear(tried[answered]))
    assert logits[2].isnan().all()
    assert problem.refused.tolist() == [False, False, True, False, False, False]
    assert problem.tally.forwards.tolist() == [1, 0, 2, 0, 0, 0]
    assert problem.tally.failures == {2: "why 2"}
    assert not problem.tally.out_of_budget.any()
    seen = model.seen
    logits = problem.logits(images * 0.5)
    assert logits.isnan().all(dim=1).tolist() == [False, False, True, False, False, False]
    assert model.seen == seen + 5


def test_without_clean_logits_a_failure_is_raised(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(Failing(linear), images, labels)  # type: ignore[arg-type]
    with pytest.raises(NoAnswer):
        problem.logits(torch.ones_like(images))


def test_a_failure_comes_before_the_budget(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(Failing(linear), images, labels, max_forwards=2)  # type: ignore[arg-type]
    bright = images.clone()
    bright[3, 0, 0, 0] = 1.0
    for _ in range(3):
        problem.logits(bright)
    assert problem.tally.forwards.tolist() == [2, 2, 2, 0, 2, 2]
    assert problem.tally.out_of_budget.tolist() == [True, True, True, False, True, True]
    assert problem.refused.all()


def test_the_clock_refuses_everyone_once_the_time_is_over(
    linear: Classifier, images: Tensor, labels: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    with torch.no_grad():
        clean = linear(images)
    problem = make(linear, images, labels, clean_logits=clean, deadline=5.0)
    problem.logits(images)
    assert not problem.may_refuse  # so that no device is waited for
    now[0] = 5.0
    part = problem[torch.tensor([1, 4])]
    assert part.logits(images[:2]).isnan().all()
    assert part.all_refused
    assert problem.tally.out_of_time.tolist() == [False, True, False, False, True, False]
    assert problem.tally.forwards.tolist() == [1] * 6


def test_a_problem_without_gradients_counts_with_the_whole(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels)
    closed = problem.without_gradients()
    assert (closed.gives_gradients, problem.gives_gradients) == (False, True)
    closed.logits(images)
    assert problem.tally.forwards.tolist() == [1] * 6


def test_without_limits_no_counter_is_read(
    linear: Classifier, images: Tensor, labels: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading one would wait for a GPU at every pass."""
    problem = make(linear, images, labels)
    monkeypatch.setattr(problem.tally, "may_forward", None)
    monkeypatch.setattr(problem.tally, "refused", None)
    assert problem.logits(images).isfinite().all()
    assert problem[torch.tensor([3, 0])].refused.tolist() == [False, False]
    assert not problem.all_refused


def test_passes_of_a_stage_are_summed_over_its_turns(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels)
    part = problem[torch.tensor([2, 0])]
    for name in ("search", "check", "search"):
        with problem.stage(name):
            part.gradient(part.images, part.goal.margin)
            part.logits(part.images)
    stages = problem.tally.stages
    assert list(stages) == ["search", "check"]
    assert stages["search"].forwards.tolist() == [4, 0, 4, 0, 0, 0]
    assert stages["search"].backwards.tolist() == [2, 0, 2, 0, 0, 0]
    assert stages["check"].forwards.tolist() == [2, 0, 2, 0, 0, 0]
