"""Training and test images kept apart, with the same classes."""

import os
from dataclasses import replace
from pathlib import Path

import torch

from pinprick.data.dataset import Dataset
from pinprick.data.registry import find_source
from pinprick.data.sets.folder import find_splits
from pinprick.errors import BadInput


def without(train: Dataset, test: Dataset) -> Dataset:
    """The training images that are not test images too."""
    if train.pixels is None and test.pixels is None:
        taken = {os.path.abspath(file) for file in test.files}
        kept = torch.tensor([os.path.abspath(file) not in taken for file in train.files])
    elif train.source == test.source:
        kept = ~torch.isin(train.indices, test.indices)
    else:
        _check_apart(train, test)
        return train
    if not kept.any():
        raise BadInput(f"no image is left to train on: all of {train.source} are test images")
    return train[kept.nonzero().squeeze(1)]


def _check_apart(train: Dataset, test: Dataset) -> None:
    """Refuse a set with both splits beside one of them: their indices do not match."""
    for one, other in ((train, test), (test, train)):
        if one.name == other.name and one.source.endswith("/both"):
            raise BadInput(
                f"{one.source} holds images of {other.source}; train on one split, or leave the "
                "test out"
            )


def has_splits(name: str) -> bool:
    """Whether the set has training images apart from its test images."""
    kind, colon, path = name.partition(":")
    if not colon:
        return "train" in find_source(name).counts
    if kind == "folder":
        return bool(find_splits(Path(path).expanduser()))
    return kind == "tensors" and Path(path).expanduser().is_dir()


def with_classes(
    train: Dataset, test: Dataset, whole: Dataset | None = None
) -> tuple[Dataset, Dataset]:
    """Both with the classes of the training images; labels of the test images go by name.

    Where labels are bare numbers, the highest label in ``whole``, the set that the training images
    are from, and in the test images gives the number of classes.
    """
    if train.classes and test.classes:
        return train, _by_name(test, train)
    classes = train.classes or test.classes or _numbered(train, test, whole or train)
    return replace(train, classes=classes), replace(test, classes=classes)


def _by_name(test: Dataset, train: Dataset) -> Dataset:
    if test.classes == train.classes:
        return test
    numbers = {name: number for number, name in enumerate(train.classes)}
    used = set(test.labels.tolist())
    for number, name in enumerate(test.classes):
        if number in used and name not in numbers:
            raise BadInput(
                f"the class {name!r} of {test.source} is not among those of {train.source}"
            )
    to = torch.tensor([numbers.get(name, 0) for name in test.classes])
    return replace(test, classes=train.classes, labels=to[test.labels], targets=None)


def _numbered(train: Dataset, test: Dataset, whole: Dataset) -> tuple[str, ...]:
    """Classes from 0 to the highest label."""
    if not len(train) or not len(test):
        return ()
    part = max(whole, test, key=lambda some: int(some.labels.max()))
    highest = int(part.labels.max())
    if highest >= len(whole):  # else the network would grow with a number in a file
        raise BadInput(
            f"label {highest} of {part.source} needs {highest + 1} classes, but there are "
            f"{len(whole)} training images; name the classes, or number them from 0"
        )
    return tuple(map(str, range(highest + 1)))
