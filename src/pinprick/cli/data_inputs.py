"""Images of a dataset as what a command is to work on, some at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from pinprick.cli.console import remark
from pinprick.cli.inputs import Inputs, ask, find_targets, read_inputs
from pinprick.cli.roll import Roll
from pinprick.data.dataset import Dataset
from pinprick.data.match_labels import check_shape, match_labels
from pinprick.data.pictures import Named, Unreadable
from pinprick.data.select import load_subset
from pinprick.data.subset import Range, Subset, describe, parse
from pinprick.errors import BadInput
from pinprick.model import Classifier

_ROOM = 128 * 3 * 224 * 224  # elements that are read at a time


@dataclass(frozen=True, eq=False)
class Asked:
    """A dataset as the command line names it.

    Attributes:
        data: The images.
        words: The same as one line of text, with what ``--limit`` leaves of them.
    """

    data: Dataset
    words: str


def open_data(text: str, *, root: Path | None, limit: int | None) -> Asked:
    """The images that ``text`` names, and of these the first ``limit``."""
    subset = parse(text)
    data = load_subset(subset, root=root)
    if limit is not None and limit < len(data):
        data = data[:limit]
        subset = Subset(subset.name, subset.split, (*subset.steps, Range(0, limit)))
    return Asked(data, describe(subset))


def read_groups(
    asked: Asked | None,
    pictures: Sequence[Path],
    model: Classifier,
    *,
    labels: Sequence[str],
    target: str | None,
    quiet: bool,
) -> tuple[Iterator[Inputs], int]:
    """What a command is to work on, and how many images that is: the dataset, or the pictures."""
    if asked is not None:
        return read_data(asked.data, model, target=target, quiet=quiet), len(asked.data)
    inputs = read_inputs(pictures, model, labels=labels, target=target, quiet=quiet)
    return iter([inputs]), len(inputs.photos)


def read_data(
    data: Dataset, model: Classifier, *, target: str | None = None, quiet: bool = False
) -> Iterator[Inputs]:
    """The images in groups that fit the memory, with labels in the model's classes."""
    check_shape(data, model)
    count = None
    for part in _groups(data, model):
        names, images, kept, unreadable = _read(part, model)
        for file in unreadable:
            remark(f"pinprick: {file.path}: {file.reason}")
        if not names:
            continue
        logits, heard, unheard = _ask(part, model, images, names, proven=count is not None)
        if count is None:
            count = logits.shape[1]
            said = match_labels(data, model, count)[1]
            if said and not quiet:
                remark(said)
        some = match_labels(part[kept[heard]], model, count)[0]
        photos = [names[row] for row in heard.tolist()]
        yield Inputs(
            photos=photos,
            unreadable=[*unreadable, *unheard],
            images=images[heard],
            logits=logits,
            labels=some.labels,
            label_from=["data"] * len(photos),
            label_words=[model.class_name(label) for label in some.labels.tolist()],
            targets=_targets(target, some, photos, model, logits),
            ids=some.indices,
        )
    if count is None:
        raise BadInput(f"there is no picture to work on in {data.source}")


def gather(groups: Iterator[Inputs]) -> Inputs:
    """All groups as one, where they are few."""
    parts = list(groups)
    roll = Roll()
    for part in parts:
        roll.add(part)
    targets = [part.targets for part in parts if part.targets is not None]
    return Inputs(
        photos=[photo for part in parts for photo in part.photos],
        images=torch.cat([part.images for part in parts]),
        logits=torch.cat([part.logits for part in parts]),
        labels=torch.cat([part.labels for part in parts]),
        targets=torch.cat(targets) if targets else None,
        ids=torch.cat([part.ids for part in parts]),
        label_from=roll.label_from,
        label_words=roll.label_words,
        unreadable=roll.unreadable,
    )


def _groups(data: Dataset, model: Classifier) -> Iterator[Dataset]:
    if data.pixels is not None:
        elements = data.pixels.shape[1:].numel()
    else:
        height, width = model.size or (224, 224)
        elements = 3 * height * width
    size = max(1, _ROOM // elements)
    for start in range(0, len(data), size):
        yield data[start : start + size]


def _read(part: Dataset, model: Classifier) -> tuple[list[Named], Tensor, Tensor, list[Unreadable]]:
    """Names and images of what can be read, which these are, and the files that cannot."""
    if part.pixels is not None:
        names = [_name(part, row) for row in range(len(part))]
        return names, part.images(), torch.arange(len(part)), []
    kept, images, unreadable = [], [], []
    for row in range(len(part)):
        try:
            images.append(part[row : row + 1].images(model))
            kept.append(row)
        except BadInput as error:
            path = part.files[row]
            unreadable.append(Unreadable(path, str(error).removeprefix(f"{path}: ")))
    rows = torch.tensor(kept, dtype=torch.long)
    if len({image.shape for image in images}) > 1:
        part[rows].images(model)  # says which of them has another size
    names = [_name(part, row) for row in kept]
    return names, torch.cat(images) if images else torch.empty(0), rows, unreadable


def _name(part: Dataset, row: int) -> Named:
    """Image 17 of cifar10/test is cifar10-test-17, a file among many 17-cat."""
    index = int(part.indices[row])
    if part.files:
        return Named(f"{index}-{part.files[row].stem}", part.files[row])
    stem = Path(part.source.partition(":")[2]).stem if ":" in part.source else part.source
    return Named(f"{stem.replace('/', '-')}-{index}", Path(f"{part.source}[{index}]"))


def _ask(
    part: Dataset, model: Classifier, images: Tensor, names: list[Named], *, proven: bool
) -> tuple[Tensor, Tensor, list[Unreadable]]:
    try:
        return ask(model, images, names, proven=proven)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise BadInput(
            f"{model.name} does not take images of {part.name}, {tuple(images.shape[1:])}: {reason}"
        ) from error


def _targets(
    target: str | None, some: Dataset, names: list[Named], model: Classifier, logits: Tensor
) -> Tensor | None:
    if target != "given":
        return None if target is None else find_targets(target, names, model, logits, some.labels)
    if some.targets is None:
        raise BadInput(f"{some.name} gives no targets; name a class, or least-likely")
    return some.targets
