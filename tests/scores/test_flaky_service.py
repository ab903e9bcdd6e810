"""A service on loopback that drops, delays and refuses: every image is answered, nothing twice."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from pinprick import NoAnswer, run_attack, score_model
from pinprick.attacks.card import Attack, Card
from pinprick.oracle import exact_images, exact_linear
from pinprick.problem import Problem
from pinprick.types import Images
from scores.service import SHAPE, Flaky, open_service


@pytest.fixture
def flaky() -> Iterator[Flaky]:
    with open_service() as flaky:
        yield flaky


def test_every_image_is_answered_and_the_counts_are_exact(flaky: Flaky) -> None:
    flaky.troubles = ["drop", "503", "", "delay", "", "429", "drop", ""]
    images = exact_images(10, SHAPE).float()
    model = score_model(flaky.ask, name="service", max_batch=4, backoff=0.001)
    with torch.no_grad():
        expected = exact_linear(4, SHAPE)(images.double())
    torch.testing.assert_close(model(images).double(), expected, rtol=0, atol=1e-6)
    assert flaky.received == [4, 4, 4, 4, 4, 2, 2, 2]
    assert flaky.answered == [image.numpy().tobytes() for image in images]  # each of them once
    assert vars(model.sent) == {
        "asked": 10,
        "cached": 0,
        "images": 26,
        "requests": 8,
        "failures": 5,
        "unanswered": 0,
    }


def test_a_second_question_sends_nothing(flaky: Flaky, tmp_path: Path) -> None:
    images = exact_images(6, SHAPE).float()
    first = score_model(flaky.ask, name="service", cache=tmp_path)(images)
    again = score_model(flaky.ask, name="service", cache=tmp_path)  # as another process would
    assert torch.equal(again(images), first)
    assert len(flaky.received) == 1
    assert (again.sent.cached, again.sent.requests) == (6, 0)


def test_what_was_answered_before_it_broke_down_is_kept(flaky: Flaky, tmp_path: Path) -> None:
    flaky.troubles = ["", "", *["503"] * 5]
    images = exact_images(6, SHAPE).float()
    options = {"name": "service", "max_batch": 2, "cache": tmp_path}
    with pytest.raises(NoAnswer, match=r"service did not answer in 4 tries \(the last: .*503"):
        score_model(flaky.ask, retries=2, backoff=0.001, **options)(images)  # type: ignore[arg-type]
    score_model(flaky.ask, **options)(images)  # type: ignore[arg-type]
    assert flaky.received == [2, 2, 2, 2, 2, 1, 1, 2]
    assert len(set(flaky.answered)) == len(flaky.answered) == 6


def test_what_is_not_temporary_is_not_tried_again(flaky: Flaky) -> None:
    flaky.troubles = ["401"]
    model = score_model(flaky.ask, name="service", backoff=0.001)
    with pytest.raises(OSError, match="401"):
        model(exact_images(2, SHAPE).float())
    assert flaky.received == [2]
    assert model.sent.failures == 1


@dataclass(frozen=True, kw_only=True)
class _Darken(Attack):
    """Asks about ever darker images, which needs scores alone."""

    card: ClassVar[Card] = Card(
        name="darken",
        title="Darken",
        norm="linf",
        kind="budget",
        access="scores",
        targeted=True,
        paper="",
    )

    def __call__(self, problem: Problem) -> Images:
        adv = problem.images
        for share in (0.9, 0.6, 0.3):
            adv = problem.images * share
            problem.logits(adv)
        return adv


def test_an_attack_says_what_was_really_sent(flaky: Flaky) -> None:
    flaky.troubles = ["", "drop"]
    images = exact_images(4, SHAPE).float()
    model = score_model(flaky.ask, name="service", backoff=0.001)
    labels = model(images).argmax(dim=1)
    before = model.sent
    result = run_attack(_Darken(), model, images, labels, batch_size=2)
    assert result.forwards.tolist() == [3] * 4
    # in each batch of two: the clean ones, known; three questions of the attack; the last of them
    # once more, known; and that one rounded. The first call of all was made twice.
    assert result.sent == {
        "asked": 24,
        "cached": 8,
        "images": 24 - 8 + 2,
        "requests": 2 * 4 + 1,
        "failures": 1,
        "unanswered": 0,
    }
    assert len(set(flaky.answered)) == len(flaky.answered)  # none was answered twice
    assert (model.sent - before).asked == 4 * 6 + 1  # the referee's look at the first image
