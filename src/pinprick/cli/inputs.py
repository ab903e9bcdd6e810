"""What a command is to work on: pictures as the model wants them, their labels and targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from pinprick.cli.console import remark
from pinprick.cli.roll import Roll
from pinprick.data.classes import classes_named, find_class
from pinprick.data.pictures import Named, Photo, Unreadable, read_pictures
from pinprick.data.sets.photographs import read_photographs
from pinprick.errors import BadInput, NoAnswer
from pinprick.goal import least_likely
from pinprick.intake import check_answers
from pinprick.model import Classifier

_SEVERAL = 16  # pictures that the model is asked about at a time


@dataclass(frozen=True, eq=False, kw_only=True)
class Inputs(Roll):
    """Pictures that were read, ready for the model.

    Attributes:
        photos: What the pictures are classes_named, in order.
        images: The pictures as the model wants them, in [0, 1].
        logits: What the model says of them.
        labels: The class of each.
        targets: The class each is to be taken for, if any.
        ids: The number of each, which its random stream belongs to.
    """

    photos: Sequence[Named]
    images: Tensor
    logits: Tensor
    labels: Tensor
    targets: Tensor | None
    ids: Tensor


def read_inputs(
    paths: Sequence[Path],
    model: Classifier,
    *,
    labels: Sequence[str] = (),
    target: str | None = None,
    quiet: bool = False,
) -> Inputs:
    """Read the pictures, or those of the demo; say on stderr what is wrong with any of them."""
    found, unreadable = read_pictures(paths) if paths else (read_photographs(), [])
    for file in unreadable:
        remark(f"pinprick: {file.path}: {file.reason}")
    if not found:
        raise BadInput(f"there is no picture to work on{_class_folders(paths)}")
    records = [photo.record for photo in found]
    for record in records:
        if record.remark and not quiet:
            remark(f"{record.path}: {record.remark}")
    images = prepare(found, model)
    logits, heard, unheard = ask(model, images, records)
    photos = [records[row] for row in heard.tolist()]
    true, label_from = find_labels(photos, model, logits, labels)
    return Inputs(
        photos=photos,
        unreadable=[*unreadable, *unheard],
        images=images[heard],
        logits=logits,
        labels=true,
        label_from=label_from,
        label_words=[
            f"{model.class_name(label)}{' *' if source == 'model' else ''}"
            for label, source in zip(true.tolist(), label_from, strict=True)
        ],
        targets=None if target is None else find_targets(target, photos, model, logits, true),
        ids=heard,
    )


def _class_folders(paths: Sequence[Path]) -> str:
    """The way out for folders that hold no pictures but other folders."""
    folders = [
        path for path in paths if path.is_dir() and any(each.is_dir() for each in path.iterdir())
    ]
    return f"; class folders are read by --data folder:{folders[0]}" if folders else ""


def prepare(photos: Sequence[Photo], model: Classifier) -> Tensor:
    """One tensor of all pictures, as the model wants them."""
    images = [model.prepare(photo.image) for photo in photos]
    for photo, image in zip(photos, images, strict=True):
        if image.shape != images[0].shape:
            raise BadInput(
                f"{model.name} leaves pictures at their own size, but {photos[0].record.name} is "
                f"{tuple(images[0].shape)} and {photo.record.name} {tuple(image.shape)}; "
                "give pictures of one size, or Classifier(prepare=...)"
            )
    return torch.stack(images)


def ask(
    model: Classifier, images: Tensor, names: Sequence[Named], *, proven: bool = False
) -> tuple[Tensor, Tensor, list[Unreadable]]:
    """What the model says of any number of images, a few at a time.

    Gives the answers, which images they are for, and those that a remote model fails on, which are
    named on stderr. One that has not ``proven`` to work must answer for some of the first few.
    """
    answers: list[Tensor] = []
    reasons: dict[int, str] = {}
    with model.frozen(), torch.no_grad():
        for start in range(0, len(images), _SEVERAL):
            part = images[start : start + _SEVERAL]
            try:
                logits = check_answers(model(part.to(model.device or part.device)), part)
            except NoAnswer as error:
                down = len(error.reasons) == len(part) and not (answers or proven)
                if down or error.logits is None:
                    raise
                logits = error.logits
                reasons |= {start + place: reason for place, reason in error.reasons.items()}
            answers.append(logits.to(images.device))
    heard = torch.tensor(
        [row for row in range(len(images)) if row not in reasons], dtype=torch.long
    )
    unheard = [Unreadable(names[row].path, reason) for row, reason in sorted(reasons.items())]
    for file in unheard:
        remark(f"pinprick: {file.path}: {file.reason}")
    return torch.cat(answers)[heard], heard, unheard


def find_labels(
    photos: Sequence[Named], model: Classifier, logits: Tensor, given: Sequence[str]
) -> tuple[Tensor, list[str]]:
    """The class of each picture: the one given, the one known, or the model's own guess."""
    count = logits.shape[1]
    if given:
        if len(given) not in (1, len(photos)):
            raise BadInput(f"{len(given)} labels for {len(photos)} pictures; give one, or one each")
        found = [find_class(text, model.classes, count=count, owner=model.name) for text in given]
        return torch.tensor(found * (len(photos) // len(found))), ["given"] * len(photos)
    labels = logits.argmax(dim=1)
    label_from = ["model"] * len(photos)
    for i, photo in enumerate(photos):
        known = classes_named(photo.label_name, model.classes, count) if photo.label_name else []
        if len(known) == 1:
            labels[i] = known[0]
            label_from[i] = "known"
    return labels, label_from


def find_targets(
    target: str, photos: Sequence[Named], model: Classifier, logits: Tensor, labels: Tensor
) -> Tensor:
    """The class each picture is to be taken for, never its label."""
    if target == "least-likely":
        return least_likely(logits, labels)
    wanted = find_class(target, model.classes, count=logits.shape[1], owner=model.name)
    for photo, label in zip(photos, labels.tolist(), strict=True):
        if label == wanted:
            raise BadInput(
                f"{photo.name} is labelled {model.class_name(label)} already; "
                "a target must be another class"
            )
    return torch.full_like(labels, wanted)
