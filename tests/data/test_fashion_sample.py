"""Sixty-four real pictures are always there."""

from pathlib import Path

import pytest

from pinprick import BadInput
from pinprick.data import load_data
from pinprick.data.sets.mnist import SAMPLE_FILE


def test_the_sample_comes_with_the_package(tmp_path: Path) -> None:
    data = load_data("fashion_sample", root=tmp_path)
    assert data.images().shape == (64, 1, 28, 28)
    words = [data.classes[label] for label in data.labels[:4].tolist()]
    assert words == ["ankle boot", "pullover", "trouser", "trouser"]
    assert data.labels.bincount(minlength=10).min() >= 1
    assert data.pixels is not None
    assert int(data.pixels.long().sum()) == 3583219
    assert SAMPLE_FILE.with_suffix(".LICENSE").exists()


def test_it_has_no_training_split() -> None:
    with pytest.raises(BadInput, match="no training split; fashion_mnist has one"):
        load_data("fashion_sample", split="train")
