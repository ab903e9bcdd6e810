"""Where an attack starts: at a saved result, or at images of the target class."""

from collections.abc import Callable

import torch
from torch import Tensor

from pinprick.data.dataset import Dataset
from pinprick.data.match_labels import match_labels
from pinprick.data.select import load_subset
from pinprick.data.subset import Subset, parse
from pinprick.errors import BadInput
from pinprick.jobs.pictures import PictureGroup, PictureSource
from pinprick.model import Classifier
from pinprick.random import Streams
from pinprick.result import AttackResult
from pinprick.result_file import load_result
from pinprick.types import Images

Start = Callable[[PictureGroup, Classifier], AttackResult | Tensor]

_DATA = "data"


def open_start(start: str, source: PictureSource, *, seed: int) -> Start:
    """What gives the start for each group of pictures.

    Args:
        start: A file that ``save_result`` wrote, or "data" for images of the target class from the
            dataset of ``source``.
        source: The pictures to attack.
        seed: Decides which images of the target class are taken.
    """
    if start != _DATA:
        result = load_result(start)
        return lambda group, model: rows_of_result(result, group, start)
    if source.data is None or source.target is None:
        raise BadInput("--start data takes images of the class of --target from the set of --data")
    subset = parse(source.data)
    whole = load_subset(Subset(subset.name, subset.split), root=source.root)
    by_number = source.by_number
    return lambda group, model: _images_of_target(whole, group, model, seed, by_number=by_number)


def rows_of_result(result: AttackResult, group: PictureGroup, name: str) -> AttackResult:
    """The rows of a saved result that belong to the pictures, by their ids."""
    row_of = {number: row for row, number in enumerate(result.ids.tolist())}
    for number, record in zip(group.ids.tolist(), group.records, strict=True):
        if number not in row_of:
            raise BadInput(
                f"{name} has {len(result)} images, but not {record.name}; "
                "it must be of the same pictures"
            )
    rows = [row_of[number] for number in group.ids.tolist()]
    return result[torch.tensor(rows, dtype=torch.long)]


def _images_of_target(
    whole: Dataset, group: PictureGroup, model: Classifier, seed: int, *, by_number: bool
) -> Images:
    """One image of the target class per picture, drawn from the dataset by label.

    The model is not asked. An attack refuses by itself a start that has another prediction.
    """
    assert group.targets is not None, "open_start checks that there is a target"
    classes = group.logits.shape[1]
    labels = match_labels(whole, model, classes, by_number=by_number)[0].labels
    draws = Streams(seed, group.ids).uniform(1, step=0, use="image of the target class").flatten()
    rows = []
    for target, draw in zip(group.targets.tolist(), draws.tolist(), strict=True):
        pool = (labels == target).nonzero().flatten()
        if not len(pool):
            raise BadInput(f"no image of {whole.source} is labelled {model.class_name(target)}")
        rows.append(int(pool[int(draw * len(pool))]))
    return whole[torch.tensor(rows, dtype=torch.long)].images(model)
