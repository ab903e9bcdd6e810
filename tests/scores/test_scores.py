"""Any function of images becomes a model: in batches, with patience, each image once."""

import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import BadInput, NoAnswer, run_attack, score_model
from pinprick.attacks import IFGSM
from pinprick.attacks.card import Card
from pinprick.oracle import exact_images
from pinprick.scores.calls import is_temporary

SHAPE = (3, 4, 4)


class Function:
    """Mean of each channel, and a record of what it was called with."""

    def __init__(self, *troubles: Exception) -> None:
        self.calls: list[Tensor] = []
        self.troubles = list(troubles)

    def __call__(self, images: Tensor) -> Tensor:
        self.calls.append(images.clone())
        if self.troubles:
            raise self.troubles.pop(0)
        return images.mean(dim=(2, 3))

    @property
    def sizes(self) -> list[int]:
        return [len(call) for call in self.calls]


@pytest.fixture
def images() -> Tensor:
    return exact_images(7, SHAPE)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time stands still but for pauses, which are written down."""
    taken: list[float] = []
    monkeypatch.setattr(time, "sleep", taken.append)
    monkeypatch.setattr(time, "monotonic", lambda: sum(taken))
    return taken


def test_scores_are_the_functions_in_the_callers_type(images: Tensor) -> None:
    function = Function()
    model = score_model(function, name="mean", classes=("r", "g", "b"), size=(4, 4))
    scores = model(images)
    torch.testing.assert_close(scores, images.mean(dim=(2, 3)), rtol=0, atol=1e-6)
    assert scores.dtype == images.dtype == torch.float64
    assert function.calls[0].dtype == torch.float32
    assert (model.name, model.access, model.size, model.classes) == (
        "mean",
        "scores",
        (4, 4),
        ("r", "g", "b"),
    )
    assert model(images[:0]).shape == (0, 3)


def test_no_call_has_more_images_than_it_may(images: Tensor) -> None:
    function = Function()
    score_model(function, name="mean", max_batch=3)(images)
    assert function.sizes == [3, 3, 1]


def test_the_same_image_twice_is_sent_once(images: Tensor) -> None:
    function = Function()
    model = score_model(function, name="mean")
    rows = torch.tensor([0, 1, 0, 0, 2, 1])
    scores = model(images[rows])
    torch.testing.assert_close(scores, images[rows].mean(dim=(2, 3)), rtol=0, atol=1e-6)
    assert torch.equal(function.calls[0], images[:3].float())
    assert (model.sent.asked, model.sent.cached, model.sent.images) == (6, 3, 3)


def test_a_call_is_tried_again_after_growing_pauses(images: Tensor, pauses: list[float]) -> None:
    function = Function(TimeoutError(), ConnectionResetError(), OSError("no route"))
    model = score_model(function, name="mean", backoff=0.5)
    model(images)
    assert pauses == [0.5, 1, 2]
    assert (model.sent.requests, model.sent.failures, model.sent.images) == (4, 3, 28)


def test_pauses_end_at_a_minute_and_tries_at_their_number(
    images: Tensor, pauses: list[float]
) -> None:
    function = Function(*[TimeoutError("too slow") for _ in range(9)])
    with pytest.raises(NoAnswer, match=r"mean did not answer in 9 tries .the last: too slow"):
        score_model(function, name="mean", backoff=1.0, retries=8)(images[:1])
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]


def test_images_that_failed_together_are_tried_alone(images: Tensor, pauses: list[float]) -> None:
    def poisoned(some: Tensor) -> Tensor:
        if (some == images[2].float()).flatten(1).all(dim=1).any():
            raise TimeoutError("stuck")
        return some.mean(dim=(2, 3))

    model = score_model(poisoned, name="mean", retries=1)
    with pytest.raises(
        NoAnswer, match=r"^mean did not answer in 3 tries .the last: stuck.;"
    ) as seen:
        model(images)
    assert list(seen.value.reasons) == [2]
    rest = torch.tensor([0, 1, 3, 4, 5, 6])
    expected = images[rest].mean(dim=(2, 3))
    torch.testing.assert_close(seen.value.logits[rest], expected, rtol=0, atol=1e-6)
    assert seen.value.logits[2].isnan().all()
    assert vars(model.sent) == {
        "asked": 7,
        "cached": 0,
        "images": 21,
        "requests": 9,
        "failures": 3,
        "unanswered": 1,
    }
    model(images[rest])
    assert model.sent.requests == 9  # what was answered is kept


def test_a_service_that_is_down_is_not_asked_about_every_image(
    images: Tensor, pauses: list[float]
) -> None:
    function = Function(*[TimeoutError("too slow") for _ in range(99)])
    with pytest.raises(NoAnswer, match=r"too slow.*, and for 6 images more;") as seen:
        score_model(function, name="mean", retries=1)(images)
    assert function.sizes == [7, 7, 1, 1, 1]
    assert sorted(seen.value.reasons) == list(range(7))
    assert seen.value.logits.isnan().all()


def test_scores_that_are_no_numbers_are_asked_for_again_by_themselves(
    images: Tensor, pauses: list[float]
) -> None:
    sizes = []

    def odd(some: Tensor) -> Tensor:
        sizes.append(len(some))
        scores = some.mean(dim=(2, 3))
        scores[(some == images[5].float()).flatten(1).all(dim=1), 1] = torch.nan
        if len(sizes) < 3:
            scores[(some == images[1].float()).flatten(1).all(dim=1)] = torch.inf
        return scores

    model = score_model(odd, name="odd", retries=3)
    with pytest.raises(NoAnswer, match=r"odd did not answer in 4 tries .*not finite") as seen:
        model(images)
    assert sizes == [7, 2, 2, 1]
    assert list(seen.value.reasons) == [5]
    assert seen.value.logits[[0, 1, 2, 3, 4, 6]].isfinite().all()


def test_a_bad_answer_among_good_ones_is_asked_for_again(
    images: Tensor, pauses: list[float]
) -> None:
    answers = [torch.zeros(1, 3), torch.zeros(2, 3), "busy", torch.zeros(1, 4), torch.ones(1, 3)]
    model = score_model(lambda some: answers.pop(0), name="odd")
    model(images[:1])
    assert torch.equal(model(images[1:2]), torch.ones(1, 3).double())
    assert model.sent.failures == 3


def test_what_is_wrong_with_one_image_for_good_is_not_tried_again(images: Tensor) -> None:
    class Refused(OSError):
        code = 422

    def picky(some: Tensor) -> Tensor:
        if len(some) == 1 and torch.equal(some[0], images[4].float()):
            raise Refused("unprocessable")
        return some.mean(dim=(2, 3))

    model = score_model(picky, name="picky", max_batch=1)
    with pytest.raises(NoAnswer, match=r"picky did not answer in one try .*unprocessable") as seen:
        model(images)
    assert list(seen.value.reasons) == [4]
    assert model.sent.requests == 7


def test_an_error_of_the_function_itself_is_raised_at_any_time(images: Tensor) -> None:
    function = Function()
    model = score_model(function, name="mean")
    model(images[:1])
    function.troubles = [ZeroDivisionError("a bug")]
    with pytest.raises(ZeroDivisionError, match="a bug"):
        model(images)


def test_class_numbers_that_are_no_numbers_are_one_clear_line(
    images: Tensor, pauses: list[float]
) -> None:
    model = score_model(
        lambda some: [float("nan")] * len(some), name="top", access="labels", classes=("a", "b")
    )
    with pytest.raises(NoAnswer, match="class numbers from 0 to 1"):
        model(images)


def test_a_label_that_is_missing_is_no_label(images: Tensor, pauses: list[float]) -> None:
    def once(some: Tensor) -> list[int]:
        if len(some) > 1:
            raise TimeoutError("too many")
        if torch.equal(some[0], images[1].float()):
            raise TimeoutError("not this one")
        return [1]

    model = score_model(once, name="top", access="labels", classes=("a", "b"), retries=0)
    with pytest.raises(NoAnswer) as seen:
        model(images[:3])
    assert seen.value.logits[[0, 2]].tolist() == [[0, 1], [0, 1]]
    assert seen.value.logits[1].isnan().all()


def test_a_service_that_says_how_long_is_believed(images: Tensor, pauses: list[float]) -> None:
    class Busy(Exception):
        code, headers = 429, {"Retry-After": "7"}

    score_model(Function(Busy()), name="mean", backoff=0.5)(images)
    assert pauses == [7]


@pytest.mark.parametrize(
    ("ahead", "zone", "wanted"),
    [(90, "GMT", 90), (90, "-0000", 90), (7290, "+0200", 90), (-60, "GMT", 0.5)],
)
def test_a_service_that_says_until_when_is_believed(
    images: Tensor, pauses: list[float], ahead: int, zone: str, wanted: float
) -> None:
    date = time.strftime("%a, %d %b %Y %H:%M:%S ", time.gmtime(time.time() + ahead)) + zone

    class Busy(Exception):
        code, headers = 503, {"Retry-After": date}

    score_model(Function(Busy()), name="mean", backoff=0.5)(images)
    assert pauses == pytest.approx([wanted], abs=5)
    assert pauses[0] >= 0.5


def test_a_service_that_says_nothing_of_use_is_asked_as_usual(
    images: Tensor, pauses: list[float]
) -> None:
    class Busy(Exception):
        code, headers = 503, {"Retry-After": "soon"}

    score_model(Function(Busy()), name="mean", backoff=0.5)(images)
    assert pauses == [0.5]


def test_which_errors_are_temporary_can_be_told(images: Tensor, pauses: list[float]) -> None:
    function = Function(KeyError("busy"), KeyError("gone"))
    model = score_model(function, name="mean", temporary=lambda error: "busy" in str(error))
    with pytest.raises(KeyError, match="gone"):
        model(images)
    assert len(function.calls) == 2
    function = Function(KeyError("busy"))
    score_model(function, name="mean", temporary=(KeyError,))(images)
    with pytest.raises(ZeroDivisionError):
        score_model(Function(ZeroDivisionError()), name="mean")(images)


def test_errors_of_http_libraries_are_understood() -> None:
    class Response:
        def __init__(self, status_code: int) -> None:
            self.status_code = status_code

    class Odd(OSError):
        def __init__(self, status: int) -> None:
            self.response = Response(status)

    assert [code for code in (400, 404, 408, 429, 500, 503) if is_temporary(Odd(code))] == [
        408,
        429,
        500,
        503,
    ]
    assert is_temporary(TimeoutError())
    assert is_temporary(json.JSONDecodeError("Expecting value", "<html>", 0))
    assert not is_temporary(ValueError())


def test_troubles_of_the_network_are_known_as_httpx_has_them() -> None:
    """Its timeouts descend from its own TransportError, which is no OSError."""
    transport = type("TransportError", (Exception,), {"__module__": "httpx"})
    timeout = type("ReadTimeout", (transport,), {"__module__": "httpx"})
    assert is_temporary(timeout())
    assert not is_temporary(type("TransportError", (Exception,), {"__module__": "mine"})())


def test_calls_are_no_more_often_than_they_may(images: Tensor, pauses: list[float]) -> None:
    score_model(Function(TimeoutError()), name="mean", max_batch=2, per_second=4.0, backoff=0.1)(
        images
    )
    assert pauses == pytest.approx([0.1, 0.15, 0.25, 0.25, 0.25])  # five calls, a quarter apart


def test_answers_are_kept_by_model_version_and_content(images: Tensor, tmp_path: Path) -> None:
    def calls(name: str, version: str, pictures: Tensor) -> int:
        function = Function()
        score_model(function, name=name, version=version, cache=tmp_path)(pictures)
        return len(function.calls)

    assert calls("mean", "1", images) == 1
    assert calls("mean", "1", images.flip(0)) == 0
    assert calls("mean", "2", images) == 1
    assert calls("other", "1", images) == 1
    changed = images.clone()
    changed[3, 0, 0, 0] += 1 / 256
    function = Function()
    score_model(function, name="mean", version="1", cache=tmp_path)(changed)
    assert function.sizes == [1]
    assert calls("mean", "1", images.transpose(2, 3).reshape(7, 3, 2, 8)) == 1  # another shape


def test_memory_is_bounded_and_may_be_none(images: Tensor) -> None:
    function = Function()
    model = score_model(function, name="mean", remember=3)
    model(images)
    model(images[4:])
    model(images[:4])
    assert function.sizes == [7, 4]
    forgetful = score_model(function, name="mean", remember=0)
    for _ in range(2):
        forgetful(images)
    assert function.sizes[2:] == [7, 7]


@pytest.mark.slow
def test_a_cache_is_shared_by_processes(images: Tensor, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(tmp_path, images, i)) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 2
    function = Function()
    model = score_model(function, name="mean", cache=tmp_path)
    for i in range(2):
        model(images * (i + 1) / 4)
    assert function.calls == []


def _fill(folder: Path, images: Tensor, number: int) -> None:
    model = score_model(Function(), name="mean", cache=folder, max_batch=1)
    model(images * (number + 1) / 4)


def test_a_damaged_cache_is_named(images: Tensor, tmp_path: Path) -> None:
    (tmp_path / "scores.sqlite").write_bytes(b"not a database " * 100)
    with pytest.raises(BadInput, match=r"scores\.sqlite is damaged"):
        score_model(Function(), name="mean", cache=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot make the cache"):
        score_model(Function(), name="mean", cache=tmp_path / "file" / "deep")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (torch.zeros(2, 3), r"must give a row of scores for each of 1 images, got \(2, 3\)"),
        (torch.zeros(1), r"must give a row of scores for each of 1 images, got \(1,\)"),
        (torch.zeros(1, 3, 1), r"must give .* got \(1, 3, 1\)"),
        (torch.tensor([[0.0, 1.0, torch.nan]]), "gave a score that is not finite for image 0 of 1"),
        (torch.zeros(1, 4), "gave 4 scores per image, where there are 3 classes"),
        ({"scores": []}, "gave a dict that is not made of numbers"),
        (None, "gave a NoneType"),
    ],
)
def test_an_answer_that_stays_bad_is_one_clear_line(
    images: Tensor, pauses: list[float], answer: Any, message: str
) -> None:
    model = score_model(lambda some: answer, name="odd", classes=("a", "b", "c"), retries=1)
    with pytest.raises(NoAnswer, match=f"odd did not answer in 2 tries .*odd {message}") as error:
        model(images[:1])
    assert "\n" not in str(error.value)


def test_probabilities_become_logits(images: Tensor, pauses: list[float]) -> None:
    chances = torch.tensor([[0.25, 0.75, 0.0]])
    model = score_model(lambda some: chances.expand(len(some), 3), name="p", probabilities=True)
    torch.testing.assert_close(model(images[:2]).softmax(dim=1), chances.expand(2, 3).double())
    with pytest.raises(NoAnswer, match="p gave probabilities from 0 to 2"):
        score_model(lambda some: torch.tensor([[0.0, 2.0]]), name="p", probabilities=True)(
            images[:1]
        )


@pytest.mark.parametrize("form", ["numbers", "rows"])
def test_labels_alone_are_one_hot(images: Tensor, form: str) -> None:
    def function(some: Tensor) -> Tensor:
        scores = some.mean(dim=(2, 3))
        return scores.argmax(dim=1) if form == "numbers" else scores

    model = score_model(function, name="top", access="labels", classes=("r", "g", "b"))
    answers = model(images)
    assert answers.dtype == images.dtype
    assert torch.equal(answers.argmax(dim=1), images.mean(dim=(2, 3)).argmax(dim=1))
    assert sorted(answers[0].tolist()) == [0, 0, 1]


def test_class_numbers_need_classes_and_keep_to_them(images: Tensor, pauses: list[float]) -> None:
    def three(some: Tensor) -> list[int]:
        return [3] * len(some)

    with pytest.raises(BadInput, match=r"score_model\(classes=...\) must say"):
        score_model(three, name="top", access="labels")(images)
    with pytest.raises(NoAnswer, match="class numbers from 0 to 2"):
        score_model(three, name="top", access="labels", classes=("r", "g", "b"))(images)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_batch": 0}, "max_batch must be at least 1, got 0"),
        ({"retries": -1}, "retries must be at least 0, got -1"),
        ({"per_second": 0.0}, "per_second must be at least one call per day, or None, got 0.0"),
        ({"backoff": -1.0}, "backoff must be seconds from 0 on, got -1.0"),
    ],
)
def test_settings_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        score_model(Function(), name="mean", **options)


def test_gradients_are_refused_before_anything_is_sent(images: Tensor) -> None:
    function = Function()
    model = score_model(function, name="mean")
    with pytest.raises(BadInput, match="ifgsm needs gradients, but mean gives scores alone"):
        run_attack(IFGSM(), model, images, torch.zeros(7, dtype=torch.long))
    assert function.calls == []


def test_a_batch_without_memory_is_not_sent_again(
    images: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy_for_memory(self: IFGSM, problem: Any) -> Tensor:
        problem.logits(problem.images * 0.5)
        raise torch.OutOfMemoryError

    scores_alone = Card(**{**vars(IFGSM.card), "access": "scores"})
    monkeypatch.setattr(IFGSM, "card", scores_alone)
    monkeypatch.setattr(IFGSM, "__call__", greedy_for_memory)
    function = Function()
    model = score_model(function, name="mean", remember=0)
    labels = images.mean(dim=(2, 3)).argmax(dim=1)
    with pytest.raises(torch.OutOfMemoryError):
        run_attack(IFGSM(), model, images, labels)
    assert function.sizes == [1, 7, 7]  # the first image, the clean ones, the attack's own
