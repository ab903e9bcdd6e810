"""Labels of a dataset as class numbers of a model, checked by name."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch

from pinprick.data.classes import imagenet_classes, synset_numbers, whole_number
from pinprick.data.dataset import Dataset
from pinprick.errors import BadInput
from pinprick.model import Classifier


def match_labels(
    data: Dataset, model: Classifier, count: int, *, by_number: bool = False
) -> tuple[Dataset, str]:
    """The set with labels in the model's classes, and a remark where they go another way.

    Labels that are bare numbers are the model's class numbers. Named classes go by name: the model
    must have each name exactly once, in any order. Classes of ImageNet are those of any model with
    a thousand. If the model has no names, classes go by number, and there must be as many.
    ``BadInput`` says the way out where the names do not match.

    Args:
        data: The set.
        model: The model.
        count: How many classes the model has.
        by_number: Whether named classes go by number, whatever the model calls them.
    """
    if not data.classes:
        return data, _match_numbers(data, model, count)
    names = () if _are_numbers(model.classes) else model.classes[:count]
    ours, theirs = _normalised(data.classes), _normalised(names)
    if ours == theirs:
        return data, ""
    if by_number:
        _check_count(data, model, count, "labels go by number only if these are equal")
        remark = _different_names(data, data.classes, model, range(count)) if names else ""
        return data, remark and f"{remark}; labels go by number"
    times, synsets = Counter(theirs), synset_numbers()
    imagenet = len(ours) == len(synsets) and data.classes == imagenet_classes()
    numbers, by_synset = [], False
    for index, (name, normal) in enumerate(zip(data.classes, ours, strict=True)):
        synset = index if imagenet else synsets.get(normal)
        if times[normal] == 1:
            numbers.append(theirs.index(normal))
        elif synset is not None and count == len(synsets):
            numbers.append(synset)
            by_synset = True
        elif names:
            raise BadInput(_names_differ(data, model, count, name, times[normal]))
        else:
            _check_count(data, model, count, "a label would not mean the same")
            order = _some(data.classes)
            return data, f"{model.name} has no class names; labels go by number, as in {order}"
    if by_synset:
        words = imagenet_classes()
        remark = _different_names(data, [words[number] for number in numbers], model, numbers)
        remark = remark and f"{remark}; labels go by ImageNet's synsets"
    else:
        remark = f"classes of {data.name} are numbered as {model.name} numbers those names"
    return _renumbered(data, numbers, model), remark


def _match_numbers(data: Dataset, model: Classifier, count: int) -> str:
    """A remark where the model names other numbers; ``BadInput`` where it lacks a label."""
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


def _renumbered(data: Dataset, numbers: Sequence[int], model: Classifier) -> Dataset:
    """The set with class ``numbers[i]`` of the model for its own class i."""
    table = torch.tensor(numbers)
    targets = None if data.targets is None else table[data.targets]
    return replace(data, classes=model.classes, labels=table[data.labels], targets=targets)


def _different_names(
    data: Dataset, names: Sequence[str], model: Classifier, numbers: Sequence[int]
) -> str:
    """A remark where the model's names of the classes ``numbers`` differ; empty if none does."""
    pairs = [(name, model.class_name(i)) for name, i in zip(names, numbers, strict=True)]
    different = [(ours, its) for ours, its in pairs if _normalised([ours]) != _normalised([its])]
    if not model.classes or not different:
        return ""
    return (
        f"{data.name} and {model.name} call {len(different)} of {len(names)} classes by other "
        f"names, such as {different[0][0]!r} and {different[0][1]!r}"
    )


def _check_count(data: Dataset, model: Classifier, count: int, reason: str) -> None:
    if len(data.classes) != count:
        raise BadInput(
            f"{data.name} has {len(data.classes)} classes and {model.name} gives {count} scores; "
            f"{reason}"
        )


def _names_differ(data: Dataset, model: Classifier, count: int, name: str, times: int) -> str:
    """Why the class cannot go by its name, which ``times`` classes of the model have."""
    if times:
        reason = f"{times} classes of {model.name} are called {name!r}"
    else:
        reason = f"{model.name} has no class called {name!r}, only {_some(model.classes[:count])}"
    text = f"labels of {data.name} cannot go by name: {reason}; give both the same names"
    if len(data.classes) != count:
        return text
    return (
        f"{text}, or use --labels-by-number (by_number=True, in a plan labels_by_number = true) "
        "if their order is the same"
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _are_numbers(names: Sequence[str]) -> bool:
    """Whether the names say no more than the number of each class, as LABEL_0 does."""
    return all(
        re.fullmatch(rf"(class|label)?[ _-]?0*{number}", name.casefold())
        for number, name in enumerate(names)
    )


def _normalised(names: Sequence[str]) -> list[str]:
    return [" ".join(name.casefold().replace("_", " ").split()) for name in names]


def check_shape(data: Dataset, model: Classifier) -> None:
    """Raise ``BadInput`` where images have a fixed size that is not the model's."""
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
        count = "one channel" if channels == 1 else f"{channels} channels"
        raise BadInput(f"images of {data.name} have {count}, but {model.name} takes {wanted}")
