"""Do a set and a model mean the same by a label? By name where they can be told, else by number."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch

from pinprick.data.classes import class_number
from pinprick.data.dataset import Dataset
from pinprick.errors import BadInput
from pinprick.model import Classifier


def agree(data: Dataset, model: Classifier, count: int) -> tuple[Dataset, str]:
    """The set with labels in the model's classes, and a remark where their names differ.

    Labels that are bare numbers are the model's class numbers. Named classes go by name if the
    model has each of the names once, in whatever order. Otherwise they go by number, and there must
    be as many of them.

    Args:
        data: The set.
        model: The model.
        count: How many classes the model has.
    """
    if not data.classes:
        return data, _agree_by_number(data, model, count)
    ours, theirs = _plain(data.classes), _plain(model.classes)
    times = Counter(theirs)
    if all(times[name] == 1 for name in ours):
        numbers = torch.tensor([theirs.index(name) for name in ours])
        if numbers.tolist() == list(range(count)):
            return data, ""
        targets = None if data.targets is None else numbers[data.targets]
        mapped = replace(data, classes=model.classes, labels=numbers[data.labels], targets=targets)
        return mapped, f"classes of {data.name} are numbered as {model.name} numbers those names"
    if len(ours) != count:
        raise BadInput(
            f"{data.name} has {len(ours)} classes and {model.name} gives {count} scores; "
            f"{_reason(data, model, times)}"
        )
    odd = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b]
    if not odd:
        return data, ""
    first = odd[0]
    return data, (
        f"{data.name} and {model.name} call {len(odd)} of {count} classes by other names, such as "
        f"{data.classes[first]!r} and {model.classes[first]!r}; labels go by number"
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
    if model.classes and all(class_number(name) is not None for name in model.classes):
        for label in data.labels.unique().tolist():
            if class_number(model.class_name(label)) not in (label, None):
                name = model.class_name(label)
                return (
                    f"{model.name} calls class {label} {name!r}; labels of {data.name} go by number"
                )
    return ""


def _reason(data: Dataset, model: Classifier, times: Counter[str]) -> str:
    """Why the set's classes cannot go by name."""
    if not model.classes:
        return "a label would not mean the same"
    name, found = next(
        (name, times[plain])
        for name, plain in zip(data.classes, _plain(data.classes), strict=True)
        if times[plain] != 1
    )
    if found:
        return f"{found} classes of {model.name} are called {name!r}"
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
