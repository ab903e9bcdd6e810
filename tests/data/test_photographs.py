"""The photographs of the demo come with scikit-image, without the network."""

import sys

import pytest

from pinprick import MissingExtra
from pinprick.data.classes import imagenet_classes
from pinprick.data.sets.photographs import read_photographs


def test_the_photographs_are_there_in_colour() -> None:
    photos = {photo.record.name: photo for photo in read_photographs()}
    assert list(photos) == ["chelsea", "coffee", "camera", "rocket", "motorcycle"]
    assert {photo.image.mode for photo in photos.values()} == {"RGB"}
    assert photos["chelsea"].image.size == (451, 300)


def test_their_labels_are_classes_of_imagenet() -> None:
    labels = {photo.record.label_name for photo in read_photographs()} - {""}
    assert labels == {"espresso", "tripod"}
    assert labels <= set(imagenet_classes())


def test_without_scikit_image_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(MissingExtra, match=r"scikit-image.* pip install 'pinprick\[demo\]'"):
        read_photographs()
