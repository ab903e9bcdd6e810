"""The best so far of a watched run: the same as the trace of the run, and cheap to keep."""

import pytest
import torch
from torch import Tensor

from pinprick import attack_batches
from pinprick.attacks import Greedy, Pinprick
from pinprick.attacks.card import Attack
from pinprick.oracle import exact_images, exact_linear, sure_images
from pinprick.web import live_trace
from pinprick.web.live_trace import LiveTrace

SHAPE = (3, 6, 5)


def watched(attack: Attack) -> tuple[LiveTrace, Tensor]:
    model = exact_linear(4, SHAPE)
    images = sure_images(model, exact_images(1, SHAPE))
    trace = LiveTrace(images, attack.facts().unit or "pixels", lambda: None)
    labels = model(images).argmax(dim=1)
    (result,) = attack_batches(attack, model, images, labels, trace=True, watch=trace)
    spent = int(result.forwards), int(result.backwards)
    trace.end(result.adversarial, result.adversarial_logits, result.goal, *spent)
    assert result.trace is not None
    return trace, result.trace.elements[result.trace.elements.isfinite()]


@pytest.mark.parametrize("attack", [Greedy(), Pinprick(effort="fast")])
def test_the_counts_are_those_of_the_trace(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_trace, "_EVERY", 0.0)
    trace, elements = watched(attack)
    counts = [step.elements for step in trace.steps if step.fools]
    assert sorted(set(counts), reverse=True) == sorted(set(elements.int().tolist()), reverse=True)


def test_candidates_that_wait_are_looked_through_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_trace, "_EVERY", 1000.0)
    trace, elements = watched(Pinprick(effort="fast"))
    assert trace.steps[-1].elements == int(elements.min())
    assert len(trace.steps) > 1


def test_the_image_of_a_step_has_its_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_trace, "_EVERY", 0.0)
    trace, _ = watched(Pinprick(effort="fast"))
    for step in trace.steps:
        picture = trace.picture(step.number)
        assert picture is not None
        assert int((picture != trace.clean).sum()) <= step.elements
    assert trace.picture(10_000) is None


def test_steps_are_dropped_where_they_would_take_too_much_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_trace, "_EVERY", 0.0)
    monkeypatch.setattr(live_trace, "_STORED", 200)
    trace, elements = watched(Pinprick(effort="fast"))
    assert sum(step.bytes for step in trace.steps) <= 200 or len(trace.steps) == 2
    assert trace.steps[-1].elements == int(elements.min())
    assert torch.equal(trace.clean, trace.clean.clamp(0, 255))


def test_the_number_of_steps_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_trace, "_EVERY", 0.0)
    monkeypatch.setattr(live_trace, "_STEPS", 4)
    trace, elements = watched(Pinprick(effort="fast"))
    assert len(trace.steps) <= 4 < trace.steps[-1].number
    assert trace.steps[-1].elements == int(elements.min())
