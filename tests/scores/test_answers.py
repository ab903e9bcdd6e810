"""Answers come back to the question that they were given to, and to no other."""

import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import BadInput, score_model
from pinprick.oracle import exact_images

COLOURS = ("r", "g", "b")


@pytest.fixture
def images() -> Tensor:
    return exact_images(4, (3, 4, 4))


def means(some: Tensor) -> Tensor:
    return some.mean(dim=(2, 3))


def tops(some: Tensor) -> Tensor:
    return means(some).argmax(dim=1)


def test_classes_of_a_run_by_labels_are_not_scores_of_another(
    images: Tensor, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"name": "colours", "classes": COLOURS, "cache": tmp_path}
    score_model(tops, access="labels", **options)(images)
    scores = score_model(means, **options)(images)
    torch.testing.assert_close(scores, means(images), rtol=0, atol=1e-6)


def test_scores_are_not_probabilities_of_another_run(images: Tensor, tmp_path: Path) -> None:
    score_model(lambda some: means(some) * 100 - 50, name="colours", cache=tmp_path)(images)
    shares = means(images) / means(images).sum(dim=1, keepdim=True)
    asked = score_model(lambda some: shares, name="colours", cache=tmp_path, probabilities=True)
    torch.testing.assert_close(asked(images).softmax(dim=1), shares, rtol=0, atol=1e-6)


def test_a_name_and_a_version_are_told_apart(images: Tensor, tmp_path: Path) -> None:
    score_model(means, name="a", version="b\0c", cache=tmp_path)(images)
    other = score_model(lambda some: 1 - means(some), name="a\0b", version="c", cache=tmp_path)
    torch.testing.assert_close(other(images), 1 - means(images), rtol=0, atol=1e-6)


def test_a_cache_of_an_earlier_version_gives_no_rows(images: Tensor, tmp_path: Path) -> None:
    """Its keys were made of name and version alone."""
    file = sqlite3.connect(tmp_path / "scores.sqlite")
    file.execute("CREATE TABLE answers (key BLOB PRIMARY KEY, row BLOB)")
    model = hashlib.sha256(b"colours\0").digest()
    for image in images.float():
        key = hashlib.sha256(model + b"(3, 4, 4)" + image.numpy().tobytes()).digest()
        row = torch.tensor([0.0, 0.0, 1.0]).double().numpy().tobytes()
        file.execute("INSERT INTO answers VALUES (?, ?)", (key, row))
    file.commit()
    file.close()
    asked = score_model(means, name="colours", cache=tmp_path)
    torch.testing.assert_close(asked(images), means(images), rtol=0, atol=1e-6)
    assert asked.sent.cached == 0


def test_a_cache_of_another_number_of_classes_says_so(images: Tensor, tmp_path: Path) -> None:
    score_model(means, name="colours", cache=tmp_path)(images)
    asked = score_model(means, name="colours", cache=tmp_path, classes=("a", "b"))
    with pytest.raises(BadInput, match=r"cache.* 3 scores per image.* 2 classes; give .*version"):
        asked(images)


@pytest.mark.parametrize("cached", [False, True])
def test_equal_images_of_a_batch_are_merged_only_where_answers_are_kept(
    images: Tensor, tmp_path: Path, cached: bool
) -> None:
    sizes = []

    def noisy(some: Tensor) -> Tensor:
        sizes.append(len(some))
        return means(some) + torch.rand(len(some), 3)

    model = score_model(noisy, name="noisy", remember=0, cache=tmp_path if cached else None)
    same = images[[0, 0, 0, 1]]
    scores = model(same)
    assert sizes == ([2] if cached else [4])
    assert len(scores.unique(dim=0)) == (2 if cached else 4)
    assert model.sent.cached == (2 if cached else 0)


def test_what_is_remembered_cannot_be_below_none() -> None:
    with pytest.raises(BadInput, match="remember must be at least 0, got -1"):
        score_model(means, name="colours", remember=-1)
