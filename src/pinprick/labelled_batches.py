"""Batches of (images, labels) from a DataLoader, any other iterable or a ``Dataset``, one by one.

What belongs to single images and is not in the batches is refused: nobody can say to which image
of a shuffled loader a target belongs.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pinprick.data.dataset import Dataset
from pinprick.errors import BadInput
from pinprick.intake import Task, check_whole
from pinprick.model import Classifier

_AT_A_TIME = 256  # images of a Dataset, unless the batch size is given

Take = Callable[[Any, Any, Tensor], Task]  # makes a task from images, labels and ids


def are_batches(images: Any) -> bool:
    """Whether ``images`` gives batches, instead of being the images."""
    iterable = hasattr(images, "__iter__") or hasattr(images, "__getitem__")
    return iterable and not isinstance(images, (Tensor, np.ndarray, str))


def tasks_of(
    batches: Iterable[Any] | Dataset, model: Classifier, batch_size: int | None, take: Take
) -> Iterator[Task]:
    """One task per batch; those of a ``Dataset`` have its indices and the model's labels."""
    if isinstance(batches, Dataset):
        size = _AT_A_TIME if batch_size is None else check_whole("batch_size", batch_size, least=1)
        return _tasks_of_data(batches.for_model(model), model, size, take)
    return _tasks_of_pairs(batches, take)


def _tasks_of_data(data: Dataset, model: Classifier, size: int, take: Take) -> Iterator[Task]:
    for start in range(0, max(1, len(data)), size):
        part = data[start : start + size]
        yield take(part.images(model), part.labels, part.indices)


def _tasks_of_pairs(batches: Iterable[Any], take: Take) -> Iterator[Task]:
    """Ids count the images of all batches from 0, as for images in one tensor."""
    done, number = 0, -1
    shape: tuple[int, ...] | None = None
    for number, batch in enumerate(batches):
        try:
            images, labels = _pair(batch)
            task = take(images, labels, torch.arange(done, done + len(images)))
            shape = shape or tuple(images.shape[1:])
            if shape != images.shape[1:]:
                raise BadInput(
                    f"images are {tuple(images.shape[1:])}, those before are {shape}; "
                    "give images of one size"
                )
        except BadInput as error:
            raise BadInput(f"batch {number}: {error}") from None
        yield task
        done += len(task)
    if number < 0:
        raise BadInput("images gives no batch; an iterator that was used before is empty")


def _pair(batch: Any) -> tuple[Any, Any]:
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        came = f"{len(batch)} values" if isinstance(batch, (tuple, list)) else type(batch).__name__
        raise BadInput(f"a batch must be a pair (images, labels), got {came}")
    images, labels = batch
    if isinstance(images, Tensor) and images.ndim == 3 and np.ndim(labels) == 0:
        raise BadInput(
            "this is a single image with its label; "
            "torch.utils.data.DataLoader(dataset, batch_size=64) makes batches"
        )
    if not isinstance(images, (Tensor, np.ndarray)):
        raise BadInput(f"images of a batch must be a torch tensor, got {type(images).__name__}")
    return images, labels


def check_batches_alone(labels: Any, targets: Any, allowed: Any, ids: Any, start: Any) -> None:
    """Raise ``BadInput`` where something for single images comes beside the batches."""
    if labels is not None:
        raise BadInput(
            "images must be a torch tensor if there are labels; "
            "an iterable gives pairs (images, labels)"
        )
    beside = {"targets": targets, "ids": ids, "start": start, "allowed": _per_image(allowed)}
    for name, value in beside.items():
        if value is not None:
            raise BadInput(
                f"{name} for single images cannot be matched to batches of an iterable; call "
                f"run_attack(attack, model, images, labels, {name}=...) for each batch, then join"
            )


def _per_image(allowed: Any) -> Any:
    """The mask, if it is not the same for all images."""
    return allowed if np.ndim(allowed) == 4 and len(allowed) != 1 else None
