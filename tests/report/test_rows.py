"""A row holds what was measured for one image, in plain numbers that JSON can hold."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, run_attack
from pinprick.attacks import Greedy
from pinprick.oracle import exact_images
from pinprick.report.attack_totals import attack_totals
from pinprick.report.row import Prediction, make_rows, plain, predictions
from pinprick.report.words import (
    amount,
    duration,
    folded,
    prediction_below,
    prediction_words,
    share,
)


def test_rows_say_what_the_result_says(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    result = run_attack(Greedy(), linear, images, labels)
    rows = make_rows(result, linear)
    assert [row.l0_pixels for row in rows] == result.l0_pixels.tolist()
    assert [row.l0_elements for row in rows] == result.l0_elements.tolist()
    assert [row.l0_pixels_percent for row in rows] == result.l0_pixels_percent.tolist()
    assert [row.success for row in rows] == result.success.tolist()
    assert [row.survives_8bit for row in rows] == result.survives_8bit.tolist()
    assert [row.l2 for row in rows] == result.l2.tolist()
    assert [row.clean.index for row in rows] == labels.tolist()
    assert sum(row.seconds for row in rows) == pytest.approx(result.seconds)


def test_an_image_that_was_skipped_took_no_time(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    wrong = labels.clone()
    wrong[0] = (labels[0] + 1) % 4
    result = run_attack(Greedy(), linear, images, wrong)
    rows = make_rows(result, linear)
    assert rows[0].skipped
    assert rows[0].seconds == 0
    assert sum(row.seconds for row in rows) == pytest.approx(result.seconds)


def test_a_clean_error_stays_an_error_at_every_budget(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    wrong = labels.clone()
    wrong[0] = (labels[0] + 1) % 4
    result = run_attack(Greedy(), linear, images, wrong, targets=(labels + 2) % 4, max_forwards=0)
    totals = attack_totals({"unit": "pixels", "budgets": (3,)}, make_rows(result, linear))
    assert not result.skipped.any()
    (robust,) = totals["robust_accuracy"]
    assert (robust["withstand"], robust["images"]) == (len(labels) - 1, len(labels))
    assert totals["robust_accuracy_curve"]["pixels"] == [[0, 1 - 1 / len(labels)]]


def test_a_failure_needs_no_number_of_pixels(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(Greedy(), linear, images, labels, max_forwards=0)
    row = make_rows(result, linear)[0]
    assert (row.success, row.needed_pixels, row.needed_elements) == (False, None, None)
    assert row.remark == "out of budget"


def test_rows_survive_strict_json(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    result = run_attack(Greedy(), linear, images, labels)
    broken = replace(result, adversarial_logits=result.adversarial_logits * torch.nan)
    row = plain(make_rows(broken, linear)[0])
    again = json.loads(json.dumps(row, allow_nan=False))
    assert again == row
    assert again["adversarial"]["confidence"] is None
    assert again["needed_pixels"] is None


def test_the_work_of_rows_grows_with_the_images_and_not_with_their_square(
    linear: Classifier, work_of: Callable[[Callable[[], object]], int]
) -> None:
    images = exact_images(64, (3, 6, 5))
    labels = linear(images).argmax(dim=1)
    result = run_attack(Greedy(), linear, images, labels, trace=True)
    few, many = (work_of(partial(make_rows, part, linear)) for part in (result[:8], result))
    assert many <= 8.5 * few


def test_a_prediction_is_the_likeliest_class_in_words() -> None:
    model = Classifier(torch.nn.Identity(), classes=("no", "yes"))
    assert predictions(torch.tensor([[0.0, 0.0, 1.0e9]]), model) == [Prediction(2, "class 2", 1.0)]
    tops = Classifier(model.net, access="labels")  # whose scores are one-hot
    known, unknown = predictions(torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, torch.nan]]), tops)
    assert known == Prediction(2, "class 2", None)
    assert not unknown.answered
    assert predictions(torch.tensor([[0.0, 1.0]]), model)[0].name == "yes"


@pytest.mark.parametrize(
    ("percent", "text"),
    [(0.0, "0 %"), (0.00199, "0.002 %"), (0.0299, "0.030 %"), (0.59, "0.59 %"), (98.9, "99 %")],
)
def test_percentages_keep_the_digits_that_count(percent: float, text: str) -> None:
    assert share(percent) == text


def test_one_pixel_is_singular() -> None:
    assert amount(1, "pixels", 0.002) == "1 pixel (0.002 %)"
    assert amount(2, "elements", 10.0) == "2 elements (10 %)"


def test_times_and_long_names_fit() -> None:
    assert (duration(0.123), duration(123.4)) == ("0.12 s", "123 s")
    assert folded("a" * 10 + " " + "b" * 10, 12) == "a" * 10 + "\n" + "b" * 10
    name = "a very long name of a class that nobody can read under a picture"
    assert prediction_below(Prediction(0, name, 0.5)).endswith("…\n0.50")
    assert prediction_below(Prediction(0, name, None)).endswith("…")
    assert prediction_words(Prediction(0, "cat", None)) == "cat"
    sure, lost = Prediction(0, "cat", 0.5), Prediction(0, "cat", math.nan)
    assert prediction_words(lost) == prediction_below(lost) == "no answer"
    assert prediction_words(sure) == prediction_below(sure) == "cat 0.50"
