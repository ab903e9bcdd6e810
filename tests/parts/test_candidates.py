"""Several candidates for each image: every one is asked about once, in passes of a bounded size."""

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams
from pinprick.parts import score_loss as candidates
from pinprick.parts.score_loss import blocks, losses_of_candidates


def make(model: Classifier, images: Tensor, labels: Tensor, limit: int | None = None) -> Problem:
    with torch.no_grad():
        clean = model(images)
    streams = Streams(0, torch.arange(len(images)))
    return Problem(model, images, Goal(labels), streams, clean_logits=clean, max_forwards=limit)


def test_blocks_cover_all_candidates_and_hold_no_more_than_they_may(
    linear: Classifier, images: Tensor, labels: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make(linear, images, labels)
    assert list(blocks(problem, 7)) == [slice(0, 7)]
    monkeypatch.setattr(candidates, "_ELEMENTS", 3 * images.numel() + 1)
    assert list(blocks(problem, 7)) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    monkeypatch.setattr(candidates, "_ELEMENTS", 1)
    assert list(blocks(problem, 2)) == [slice(0, 1), slice(1, 2)]


def test_the_margin_of_each_candidate_is_that_of_its_own_image(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    problem = make(linear, images, labels)
    shares = torch.tensor([0.5, 1.0, 0.0])
    tried = (images.unsqueeze(1) * shares.view(1, 3, 1, 1, 1)).flatten(0, 1)
    loss, met = losses_of_candidates(problem, tried)
    with torch.no_grad():
        margin = problem.goal.margin(linear(images))
    torch.testing.assert_close(loss, margin.unsqueeze(1) * shares)  # no bias, so it is linear
    assert not met[:, :2].any()
    assert problem.tally.forwards.tolist() == [3] * 6


def test_who_is_refused_an_answer_is_as_bad_as_can_be(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    wrong = (labels + 1) % 4  # so that every candidate would meet the goal
    problem = make(linear, images, wrong, limit=2)
    loss, met = losses_of_candidates(problem, images.repeat_interleave(3, dim=0))
    assert met.tolist() == [[True, True, False]] * 6
    assert loss.isinf().tolist() == [[False, False, True]] * 6
    assert problem.refused.all()
