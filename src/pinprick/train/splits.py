"""Which images a network is trained on, and which it is tested on.

A set with two splits is trained on one and tested on the other. What the brackets behind its name
apply_step are training images; of the test split, a choice of classes is taken as well. Where there
is no other split, a fifth of the images is drawn and held out. No test image is trained on.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from pinprick.data.dataset import Dataset
from pinprick.data.registry import find_source
from pinprick.data.select import apply_step, load_subset
from pinprick.data.sets.folder import find_splits
from pinprick.data.subset import Draw, OfClass, Subset, describe, parse
from pinprick.errors import BadInput

_SHARE = 5  # one image in so many is held out


@dataclass(frozen=True, eq=False)
class Parts:
    """Training and test images, and how each is named.

    Attributes:
        name: The set that the training images are from.
        train, test: The images.
        train_words, test_words: The same in the words of ``load_subset``.
        remark: What was decided about the test images; empty if they are the set's own split.
    """

    name: str
    train: Dataset
    test: Dataset
    train_words: str
    test_words: str
    remark: str


def read_parts(text: str, *, root: str | Path | None = None, test: str | None = None) -> Parts:
    """The images that ``text`` names, and the test images: those of ``test``, or chosen by rule."""
    chosen = parse(text, split="")
    own_test = _has_splits(chosen.name) and chosen.split in ("", "train")
    chosen = replace(chosen, split=chosen.split or ("train" if own_test else "test"))
    rest = found = load_subset(chosen, root=root)
    if test is not None:
        tested = parse(test)
        held = load_subset(tested, root=root)
        rest = without(found, held)
    elif own_test:
        classes = tuple(step for step in chosen.steps if isinstance(step, OfClass))
        tested = Subset(chosen.name, "test", classes)
        held = load_subset(tested, root=root)
    else:
        if len(found) < 2:
            raise BadInput(f"a single image cannot be held out of {text}; name test images as well")
        draw = Draw(max(1, round(len(found) / _SHARE)))
        tested = replace(chosen, steps=(*chosen.steps, draw))
        held = apply_step(found, draw)
        rest = without(found, held)
    train, held = with_classes(rest, held, _whole(chosen, found, root))
    words, test_words, remark = describe(chosen), describe(tested), ""
    if count := len(found) - len(train):
        what = "held out as test images" if test is None else "test images, and are not trained on"
        words = f"{words} without {test_words}"
        remark = f"{count} of {len(found)} images are {what}: {test or test_words}"
    return Parts(chosen.name, train, held, words, test_words, remark)


def with_classes(
    train: Dataset, test: Dataset, whole: Dataset | None = None
) -> tuple[Dataset, Dataset]:
    """Both with the classes of the training images; those of the test images go by name.

    Where labels are bare numbers, there are as many classes as ``whole``, the set that the
    training images are from, and the test images need.
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


def _whole(chosen: Subset, found: Dataset, root: str | Path | None) -> Dataset:
    """The split that the images were chosen from, where its highest label must be known."""
    if found.classes or not chosen.steps:
        return found
    return load_subset(replace(chosen, steps=()), root=root)


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
    """Refuse a set with both splits beside one of them, which are numbered differently."""
    for one, other in ((train, test), (test, train)):
        if one.name == other.name and one.source.endswith("/both"):
            raise BadInput(
                f"{one.source} holds images of {other.source}; train on one split, or leave the "
                "test out"
            )


def _has_splits(name: str) -> bool:
    """Whether the set has training images apart from its test images."""
    kind, colon, path = name.partition(":")
    if not colon:
        return "train" in find_source(name).counts
    if kind == "folder":
        return bool(find_splits(Path(path).expanduser()))
    return kind == "tensors" and Path(path).expanduser().is_dir()
