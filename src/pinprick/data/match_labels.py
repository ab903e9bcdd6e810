"""Do a set and a model mean the same by a label? By name where they can be told, else by number."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch

from pinprick.data.classes import imagenet_classes, synset_numbers, whole_number
from pinprick.data.dataset import Dataset
from pinprick.errors import BadInput
from pinprick.model import Classifier


def agree(data: Dataset, model: Classifier, count: int) -> tuple[Dataset, str]:
    """The set with labels in the model's classes, and a remark where their names differ.

    Labels that are bare numbers are the model's class numbers. Named classes go by name if the
    model has each of the names once, in whatever order. Synsets of ImageNet are its classes where
    the model has a thousand. Otherwise classes go by number, and there must be as many of them.

    Args:
        data: The set.
        model: The model.
        count: How many classes the model has.
    """
    if not data.classes:
        return data, _agree_by_number(data, model, count)
    ours, theirs = _plain(data.classes), _plain(model.classes[:count])
    times = Counter(theirs)
    synsets = synset_numbers()
    numbers, by_synset = [], False
    for name, plain in zip(data.classes, ours, strict=True):
        if times[plain] == 1:
            numbers.append(theirs.index(plain))
        elif plain in synsets and count == len(synsets):
            numbers.append(synsets[plain])
            by_synset = True
        elif len(ours) == count:
            said = _other_names(data, data.classes, model, range(count))
            return data, said and f"{said}; labels go by number"
        else:
            raise BadInput(
                f"{data.name} has {len(ours)} classes and {model.name} gives {count} scores; "
                f"{_reason(name, times[plain], model)}"
            )
    if by_synset:
        words = imagenet_classes()
        said = _other_names(data, [words[number] for number in numbers], model, numbers)
        said = said and f"{said}; labels go by ImageNet's synsets"
    elif numbers == list(range(count)):
        said = ""
    else:
        said = f"classes of {data.name} are numbered as {model.name} numbers those names"
    return _mapped(data, numbers, model), said


def _mapped(data: Dataset, numbers: Sequence[int], model: Classifier) -> Dataset:
    """The set with class ``numbers[i]`` of the model for its own class i."""
    table = torch.tensor(numbers)
    targets = None if data.targets is None else table[data.targets]
    return replace(data, classes=model.classes, labels=table[data.labels], targets=targets)


def _other_names(
    data: Dataset, names: Sequence[str], model: Classifier, numbers: Sequence[int]
) -> str:
    """A remark where the model calls its classes ``numbers`` by other names; else nothing."""
    pairs = [(name, model.class_name(i)) for name, i in zip(names, numbers, strict=True)]
    odd = [(one, other) for one, other in pairs if _plain([one]) != _plain([other])]
    if not model.classes or not odd:
        return ""
    return (
        f"{data.name} and {model.name} call {len(odd)} of {len(names)} classes by other names, "
        f"such as {odd[0][0]!r} and {odd[0][1]!r}"
    )


def _agree_by_number(data: Dataset, model: Classifier, count: int) -> str:
    """Raise ``BadInput`` where the model lacks a label; a remark where it names other numbers."""
    wrong = (data.labels >= count).nonzero()
    if len(wrong):
        row = int(wrong[0])
        raise BadInput(
            f"{data.where(row)} is labelled {int(data.labels[row])}, but {model.name} has "
            f"{count} classes, numbered from 0 to {count - 1}"
        )
    if all(whole_number(name) is not None for name in model.classes):
        for label in data.labels.unique().tolist():
            name = model.class_name(label)
            if whole_number(name) not in (label, None):
                return f"{model.name} calls class {label} {name!r}; labels go by number"
    return ""


def _reason(name: str, times: int, model: Classifier) -> str:
    """Why a class cannot go by its name, which the model has so many times."""
    if not model.classes:
        return "a label would not mean the same"
    if times:
        return f"{times} classes of {model.name} are called {name!r}"
    return f"{model.name} has no class called {name!r}"


def check_shape(data: Dataset, model: Classifier) -> None:
    """Raise ``BadInput`` where images of a fixed size are not of the model's."""
    if data.pixels is None:
        return
    channels, height, width = data.pixels.shape[1:]
    wanted = len(model.mean or model.std or ())
    if model.size is not None and model.size != (height, width):
        raise BadInput(
            f"{data.name} has images of {height} x {width}, but {model.name} takes "
            f"{model.size[0]} x {model.size[1]}; choose another model, or save the images as files"
        )
    if wanted > 1 and wanted != channels:
        raise BadInput(
            f"images of {data.name} have {_count(channels)}, but {model.name} takes {wanted}"
        )


def _count(channels: int) -> str:
    return "one channel" if channels == 1 else f"{channels} channels"


def _plain(names: Sequence[str]) -> list[str]:
    return [" ".join(name.casefold().replace("_", " ").split()) for name in names]
