"""Labelled images in a fixed order: pixels in memory, or picture files.

Images are in [0, 1] and never normalised. Each keeps its index in the whole set, however the set is
cut. Random streams and tables go by that index.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from pinprick.data.pictures import read_picture
from pinprick.errors import BadInput, UnknownName
from pinprick.model import Classifier, Model, as_classifier
from pinprick.types import Images, Labels, Rows

Split = Literal["train", "test", "both"]  # in "both", test follows train
SPLITS: tuple[str, ...] = get_args(Split)


class NoSplit(BadInput):
    """A split that a set does not have, though it may have the other."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images with their labels, all of a set or some of it.

    Attributes:
        name: Name of the set, as in "cifar10".
        classes: Names of the classes, in the order of the labels; empty where labels are bare
            numbers, which only the model can name.
        labels: The class of each image, as the set numbers its classes; ``for_model`` gives those
            of a model.
        pixels: All images as 8-bit values; None where they are read from files.
        files: One picture file per image; empty where there are pixels.
        indices: The index of each image in its source.
        source: The set and its split, as in "cifar10/test".
        targets: The class to reach for each image, where the set says so.
    """

    name: str
    classes: tuple[str, ...]
    labels: Labels
    pixels: UInt8[Tensor, "n channel height width"] | None
    files: tuple[Path, ...]
    indices: Int[Tensor, " m"]
    source: str
    targets: Labels | None = None

    def __post_init__(self) -> None:
        count = len(self.files) if self.pixels is None else len(self.pixels)
        if not len(self.labels) == len(self.indices) == count:
            raise BadInput(f"{self.source} has {count} images and {len(self.labels)} labels")
        if self.pixels is not None and not self.pixels.shape[1:].numel():
            size = " x ".join(map(str, self.pixels.shape[1:]))
            raise BadInput(f"images of {self.source} are empty: {size}")
        count = len(self.classes)
        wrong = self.labels < 0
        if count:
            wrong = wrong | (self.labels >= count)
        if wrong.any():
            row = int(wrong.nonzero()[0])
            known = f"there are {count} classes" if count else "classes count from 0"
            raise BadInput(f"{self.where(row)} is labelled {int(self.labels[row])}, but {known}")

    @classmethod
    def in_memory(
        cls, name: str, classes: tuple[str, ...], pixels: Tensor, labels: Labels, source: str
    ) -> "Dataset":
        """A whole set whose pixels are in memory, numbered in their order."""
        return cls(name, classes, labels, pixels, (), torch.arange(len(labels)), source)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: Rows | slice) -> "Dataset":
        numbers = torch.arange(len(self))[rows]
        return replace(
            self,
            labels=self.labels[numbers],
            pixels=None if self.pixels is None else self.pixels[rows],
            files=tuple(self.files[i] for i in numbers.tolist()) if self.files else (),
            indices=self.indices[numbers],
            targets=None if self.targets is None else self.targets[numbers],
        )

    def class_name(self, label: int) -> str:
        """The class in words, or its number where the names are unknown."""
        return self.classes[label] if self.classes else f"class {label}"

    def where(self, row: int) -> str:
        """Which image is in a row: its index, its source, and its file if it has one."""
        file = f" ({self.files[row].name})" if self.files else ""
        return f"image {int(self.indices[row])} of {self.source}{file}"

    def for_model(self, model: Classifier | Model, *, by_number: bool = False) -> "Dataset":
        """The same images with labels and targets as ``model`` numbers its classes.

        Classes go by name, in any order; ``BadInput`` where the model lacks a name. Labels that are
        bare numbers stay as they are. So do those of a model without names, which is asked about
        one image to see that it has as many classes.

        Args:
            model: The model that is attacked, with its class names.
            by_number: Whether classes go by number, whatever the model calls them.
        """
        from pinprick.data.match_labels import match_labels

        classifier = as_classifier(model)
        count = len(classifier.classes) or self._count_classes(classifier)
        return match_labels(self, classifier, count, by_number=by_number)[0]

    def _count_classes(self, model: Classifier) -> int:
        if not len(self):
            return len(self.classes)
        image = self[:1].images(model)
        with model.frozen(), torch.no_grad():
            return int(model(image.to(model.device or image.device)).shape[1])

    def images(self, model: Classifier | None = None) -> Images:
        """All images in [0, 1]; files are prepared as ``model`` wants them."""
        if self.pixels is not None:
            return self.pixels.float() / 255
        if model is None:
            raise BadInput(f"{self.source} holds picture files; say for which model they are read")
        return torch.stack(list(self._prepared(model)))

    def batches(
        self, size: int, model: Classifier | None = None
    ) -> Iterator[tuple[Images, Labels]]:
        """Images and labels, ``size`` at a time, so that a large set is never read whole."""
        for start in range(0, len(self), size):
            part = self[start : start + size]
            yield part.images(model), part.labels

    def _prepared(self, model: Classifier) -> Iterator[Tensor]:
        shape = None
        for path in self.files:
            try:
                image = model.prepare(read_picture(path)[0])
            except BadInput as error:
                raise BadInput(f"{path}: {error}") from None
            shape = shape or image.shape
            if image.shape != shape:
                raise BadInput(
                    f"{path} becomes {tuple(image.shape)} and others {tuple(shape)}; "
                    f"{model.name} must bring pictures to one size, with Classifier(prepare=...)"
                )
            yield image


def split_parts(split: str) -> tuple[str, ...]:
    """``("train", "test")`` for both of them, or the one that is named."""
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    return ("train", "test") if split == "both" else (split,)


def read_split(
    name: str, split: str, read: Callable[[str], tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """Pixels and labels of a split of the set ``name``, where ``read`` gives those of one part."""
    pairs = {part: read(part) for part in split_parts(split)}
    for part, (some, theirs) in pairs.items():
        if len(some) != len(theirs):  # each part by itself: a sum may come out right by chance
            raise BadInput(f"{name}/{part} has {len(some)} images and {len(theirs)} labels")
    pixels, labels = zip(*pairs.values(), strict=True)
    return torch.cat(pixels), torch.cat(labels)
