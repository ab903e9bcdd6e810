"""Do a set and a model mean the same by a label? By name where they can be told, else by number."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from pinprick.data.dataset import Dataset
from pinprick.errors import BadInput
from pinprick.model import Classifier


def agree(data: Dataset, model: Classifier, count: int) -> tuple[Dataset, str]:
    """The set with labels in the model's classes, and a remark where their names differ.

    Classes go by name if the model has each of the set's names once, in whatever order. Otherwise
    they go by number, and there must be as many of them.

    Args:
        data: The set.
        model: The model.
        count: How many classes the model has.
    """
    ours, theirs = _plain(data.classes), _plain(model.classes)
    if theirs and all(theirs.count(name) == 1 for name in ours):
        numbers = torch.tensor([theirs.index(name) for name in ours])
        if numbers.tolist() == list(range(count)):
            return data, ""
        targets = None if data.targets is None else numbers[data.targets]
        mapped = replace(data, classes=model.classes, labels=numbers[data.labels], targets=targets)
        return mapped, f"classes of {data.name} are numbered as {model.name} numbers those names"
    if len(ours) != count:
        raise BadInput(
            f"{data.name} has {len(ours)} classes and {model.name} gives {count} scores; "
            "a label would not mean the same"
        )
    odd = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b]
    if not odd or all(name == f"class {i}" for i, name in enumerate(ours)):
        return data, ""
    first = odd[0]
    return data, (
        f"{data.name} and {model.name} call {len(odd)} of {count} classes by other names, such as "
        f"{data.classes[first]!r} and {model.classes[first]!r}; labels go by number"
    )


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
