"""Labels and targets of pictures: given, known, or from the clean prediction of the model."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from pinprick.data.classes import classes_named, find_class
from pinprick.data.pictures import LabelFrom, PictureRecord, Unreadable
from pinprick.errors import BadInput, NoAnswer, one_line
from pinprick.goal import least_likely
from pinprick.intake import check_answers
from pinprick.model import Classifier
from pinprick.types import Images, Labels, Logits

_AT_A_TIME = 16  # images that the model is asked about


def clean_logits(
    model: Classifier,
    images: Images,
    records: Sequence[PictureRecord],
    *,
    proven: bool = False,
) -> tuple[Tensor, Tensor, list[Unreadable]]:
    """The model's answers, their rows, and the pictures that a remote model fails on.

    A model that is not ``proven`` to work must answer for some of the first images.
    """
    answers: list[Tensor] = []
    reasons: dict[int, str] = {}
    with model.frozen(), torch.no_grad():
        for start in range(0, len(images), _AT_A_TIME):
            part = images[start : start + _AT_A_TIME]
            try:
                logits = check_answers(model(part.to(model.device or part.device)), part)
            except NoAnswer as error:
                down = len(error.reasons) == len(part) and not (answers or proven)
                if down or error.logits is None:
                    raise
                logits = error.logits
                reasons |= {start + row: reason for row, reason in error.reasons.items()}
            except RuntimeError as error:
                shape = tuple(images.shape[1:])
                raise BadInput(
                    f"{model.name} does not take {records[start].path}, an image of {shape}: "
                    f"{one_line(error)}"
                ) from error
            answers.append(logits.to(images.device))
    rows = torch.tensor([row for row in range(len(images)) if row not in reasons], dtype=torch.long)
    failed = [Unreadable(records[row].path, reason) for row, reason in sorted(reasons.items())]
    return torch.cat(answers)[rows], rows, failed


def label_pictures(
    records: Sequence[PictureRecord], model: Classifier, logits: Logits, given: Sequence[str]
) -> list[PictureRecord]:
    """The records with their labels: the one given, the one known, or the clean prediction."""
    count = logits.shape[1]
    if given:
        if len(given) not in (1, len(records)):
            raise BadInput(
                f"{len(given)} labels for {len(records)} pictures; give one, or one each"
            )
        found = [find_class(text, model.classes, count=count, owner=model.name) for text in given]
        labels = found * (len(records) // len(found))
        return [
            with_label(record, label, "given", model)
            for record, label in zip(records, labels, strict=True)
        ]
    labelled = []
    for record, prediction in zip(records, logits.argmax(dim=1).tolist(), strict=True):
        known = classes_named(record.label_name, model.classes, count) if record.label_name else []
        labelled.append(
            with_label(record, known[0], "known", model)
            if len(known) == 1
            else with_label(record, prediction, "model", model)
        )
    return labelled


def with_label(
    record: PictureRecord, label: int, label_from: LabelFrom, model: Classifier
) -> PictureRecord:
    return replace(record, label=label, label_from=label_from, label_name=model.class_name(label))


def find_targets(
    target: str | None, model: Classifier, logits: Logits, labels: Labels
) -> Labels | None:
    """The target class of each picture; None without a target."""
    if target is None:
        return None
    if target == "least-likely":
        return least_likely(logits, labels)
    wanted = find_class(target, model.classes, count=logits.shape[1], owner=model.name)
    return torch.full_like(labels, wanted)


def rows_to_attack(
    target: str | None, records: Sequence[PictureRecord], model: Classifier, classes: int
) -> Tensor:
    """The rows of pictures that are not labelled with the target class already."""
    rows = torch.arange(len(records))
    if target is None or target in ("least-likely", "given"):
        return rows
    wanted = find_class(target, model.classes, count=classes, owner=model.name)
    return rows[torch.tensor([record.label != wanted for record in records], dtype=torch.bool)]
